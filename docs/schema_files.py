"""Write the JSON schema of each kind into `extra/schemas`, which the site publishes: `python docs/schema_files.py`."""

import json
from pathlib import Path

from tilewright.application.cli.schema import KINDS, json_schema

FOLDER = Path(__file__).parent / "extra" / "schemas"


def texts() -> dict[str, str]:
    """Return the text of each file by its name."""
    return {f"{kind}.json": json.dumps(json_schema(kind), indent=1) + "\n" for kind in KINDS}


if __name__ == "__main__":
    made = texts()
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path in FOLDER.glob("*.json"):
        path.unlink()
    for name, text in made.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
