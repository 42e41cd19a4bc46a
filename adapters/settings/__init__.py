"""``mendwork.toml``, the environment and flags, read once by a ``main()`` into one frozen ``Settings``."""

from adapters.settings.load import load_settings
from adapters.settings.model import ModelSettings, Settings, TemporalSettings, Timeouts
from adapters.settings.project import ProjectSettings

__all__ = ["ModelSettings", "ProjectSettings", "Settings", "TemporalSettings", "Timeouts", "load_settings"]
