"""Writes the licences of the crates that a program is made of: SBOM, with `cargo metadata` on standard input.

Each text appears once, below the crates that come with it. What the build embeds (`build.rs`) is a part of the program, too,
so its component in the SBOM becomes a required one.
"""

import json
import re
import sys
from pathlib import Path
from zipfile import Path as ZipPath

NAME = re.compile(r"(un)?licen[cs]e|copying|copyright|notice", re.IGNORECASE)
EMBEDDED = {"utoipa-swagger-ui-vendored"}
CODE = {".c", ".go", ".h", ".pl", ".py", ".rs", ".sh"}

sbom = json.load(open(sys.argv[1]))
for one in sbom["components"]:
    if one["name"] in EMBEDDED:
        one["scope"] = "required"
json.dump(sbom, open(sys.argv[1], "w"), indent=2)
used = {(one["name"], one["version"]) for one in sbom["components"] if one["scope"] == "required"}
texts = {}
lines = []
for package in sorted(json.load(sys.stdin)["packages"], key=lambda one: (one["name"], one["version"])):
    crate = f"{package['name']} {package['version']}"
    if (package["name"], package["version"]) not in used:
        continue
    folder = Path(package["manifest_path"]).parent
    tops = [top for archive in folder.rglob("*.zip") for top in ZipPath(archive).iterdir() if top.is_dir()]
    for file in [*sorted(folder.rglob("*")), *(file for top in tops for file in top.iterdir())]:
        if not NAME.match(file.name) or file.suffix in CODE or not file.is_file():
            continue
        text = "\n".join(line.rstrip() for line in file.read_text(errors="replace").strip().splitlines())
        place = file.relative_to(folder) if isinstance(file, Path) else file.at
        texts.setdefault(text, []).append(f"{crate}: {place}")
    # Some come without the text.
    lines.append(f"{crate}: {package['license'] or 'see below'}, {package['repository'] or 'crates.io'}")

print("Vestibule contains these crates, under the licences that each of them names:\n")
print("\n".join(lines))
for text, places in texts.items():
    print(f"\n{'-' * 80}\n" + "\n".join(places) + f"\n{'-' * 80}\n\n{text}")
