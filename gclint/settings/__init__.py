"""What users ask for: ``[tool.gclint]`` and options on the command line, as one frozen object.

``definitions`` is the table of all settings. From it come the reader with its errors (``reading``), the
options, ``gclint config``, the JSON schema and the table in the documentation.
"""

from gclint.settings.definitions import SettingsError, Vocabulary
from gclint.settings.reading import FILES, inner_settings, load_settings, user_settings
from gclint.settings.settings import Settings, common_folder

__all__ = [
    "FILES",
    "Settings",
    "SettingsError",
    "Vocabulary",
    "common_folder",
    "inner_settings",
    "load_settings",
    "user_settings",
]
