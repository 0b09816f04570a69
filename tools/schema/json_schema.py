"""The JSON schema of a message of proto/, with its comments as descriptions: `python3 tools/schema/json_schema.py` writes
tools/schema/analysis.schema.json and tools/schema/report.schema.json anew. Needs protoc and the package protobuf."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).resolve().parent
Field = descriptor_pb2.FieldDescriptorProto
NAMES = {Field.TYPE_STRING: "string", Field.TYPE_BOOL: "boolean", Field.TYPE_DOUBLE: "number", Field.TYPE_INT32: "integer"}


class Messages:
    """All messages of the files that a proto file reads, by full name."""

    def __init__(self, proto: str) -> None:
        with tempfile.NamedTemporaryFile(suffix=".pb") as out:
            subprocess.run(["protoc", f"-I{ROOT}", "--include_imports", "--include_source_info", f"--descriptor_set_out={out.name}", proto],
                           cwd=ROOT, check=True)
            files = descriptor_pb2.FileDescriptorSet.FromString(Path(out.name).read_bytes())
        self.messages: dict[str, Any] = {}
        self.comments: dict[str, str] = {}
        for file in files.file:
            said = {tuple(place.path): " ".join((place.leading_comments + place.trailing_comments).split())
                    for place in file.source_code_info.location}
            for number, message in enumerate(file.message_type):
                self._add(message, f".{file.package}.{message.name}", (4, number), said)

    def _add(self, message: Any, name: str, path: tuple[int, ...], said: dict[tuple[int, ...], str]) -> None:
        self.messages[name] = message
        self.comments[name] = said.get(path, "")
        for number, field in enumerate(message.field):
            self.comments[f"{name}.{field.name}"] = said.get((*path, 2, number), "")
        for number, nested in enumerate(message.nested_type):
            self._add(nested, f"{name}.{nested.name}", (*path, 3, number), said)

    def schema(self, root: str) -> dict[str, Any]:
        definitions: dict[str, Any] = {}
        self._define(root, definitions)
        first = definitions.pop(_short(root))
        return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": _short(root), **first, "$defs": definitions}

    def _described(self, name: str) -> dict[str, str]:
        return {"description": self.comments[name]} if self.comments[name] else {}

    def _define(self, name: str, definitions: dict[str, Any]) -> None:
        if _short(name) in definitions:
            return
        message = self.messages[name]
        properties: dict[str, Any] = {}
        definitions[_short(name)] = {**self._described(name), "type": "object", "properties": properties,
                                     "required": [field.name for field in message.field if field.type != Field.TYPE_MESSAGE
                                                  or field.label == Field.LABEL_REPEATED]}
        for field in message.field:
            properties[field.name] = self._of(field, definitions) | self._described(f"{name}.{field.name}")

    def _of(self, field: Any, definitions: dict[str, Any]) -> dict[str, Any]:
        if field.type != Field.TYPE_MESSAGE:
            one: dict[str, Any] = {"type": NAMES[field.type]}
        elif self.messages[field.type_name].options.map_entry:
            value = self.messages[field.type_name].field[1]
            return {"type": "object", "additionalProperties": self._of(value, definitions)}
        else:
            self._define(field.type_name, definitions)
            one = {"$ref": f"#/$defs/{_short(field.type_name)}"}
        return {"type": "array", "items": one} if field.label == Field.LABEL_REPEATED else one


def _short(name: str) -> str:
    return name.removeprefix(".ascend_fuse.proto.")


def schemas() -> dict[str, str]:
    """Returns the text of each file."""
    return {f"{name}.schema.json": json.dumps(Messages(f"proto/{name}.proto").schema(f".ascend_fuse.proto.{name.title()}"), indent=1) + "\n"
            for name in ("analysis", "report")}


if __name__ == "__main__":
    for file, text in schemas().items():
        (FOLDER / file).write_text(text)
