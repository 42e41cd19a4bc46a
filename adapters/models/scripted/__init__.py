"""An OpenAI-compatible server that answers from a YAML file, with faults on demand: the provider of tests and demo."""
