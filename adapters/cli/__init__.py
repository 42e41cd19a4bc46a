"""The command line: an inbound adapter. stdout is data, stderr is for people; no logic of its own."""
