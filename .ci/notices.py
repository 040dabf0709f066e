"""Writes the licences of the crates that a program is made of: SBOM, with `cargo metadata` on standard input.

Each text appears once, below the crates that come with it.
"""

import json
import re
import sys
from pathlib import Path

NAME = re.compile(r"(un)?licen[cs]e|copying|copyright|notice", re.IGNORECASE)
CODE = {".c", ".go", ".h", ".pl", ".py", ".rs", ".sh"}

sbom = json.load(open(sys.argv[1]))
used = {(one["name"], one["version"]) for one in sbom["components"] if one["scope"] == "required"}
texts = {}
lines = []
for package in sorted(json.load(sys.stdin)["packages"], key=lambda one: (one["name"], one["version"])):
    crate = f"{package['name']} {package['version']}"
    if (package["name"], package["version"]) not in used:
        continue
    folder = Path(package["manifest_path"]).parent
    for file in sorted(folder.rglob("*")):
        if not NAME.match(file.name) or file.suffix in CODE or not file.is_file():
            continue
        text = "\n".join(line.rstrip() for line in file.read_text(errors="replace").strip().splitlines())
        texts.setdefault(text, []).append(f"{crate}: {file.relative_to(folder)}")
    # Some come without the text.
    lines.append(f"{crate}: {package['license'] or 'see below'}, {package['repository'] or 'crates.io'}")

print("Vestibule contains these crates, under the licences that each of them names:\n")
print("\n".join(lines))
for text, places in texts.items():
    print(f"\n{'-' * 80}\n" + "\n".join(places) + f"\n{'-' * 80}\n\n{text}")
