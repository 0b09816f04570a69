"""Writes tools/schema/precision.schema.json, what the JSON of `ascend-fuse precision` holds, from its records.

    PYTHONPATH=tools/python python3 tools/schema/precision_schema.py
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
import typing
from typing import Any

from ascend_fuse import precision_records

OUTPUT = pathlib.Path(__file__).with_name("precision.schema.json")
_PLAIN: dict[Any, dict[str, Any]] = {
    str: {"type": "string"}, int: {"type": "integer"}, bool: {"type": "boolean"},
    float: {"anyOf": [{"type": "number"}, {"enum": ["inf", "-inf", "nan"]}]},
}


def schema_of(hint: Any, records: dict[str, Any]) -> dict[str, Any]:
    """The schema of a type hint; records that it names are added to `records`."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    arguments = typing.get_args(hint)
    if typing.get_origin(hint) is list:
        return {"type": "array", "items": schema_of(arguments[0], records)}
    if typing.get_origin(hint) is dict:
        return {"type": "object", "additionalProperties": schema_of(arguments[1], records)}
    if hint.__name__ not in records:
        records[hint.__name__] = {}
        hints = typing.get_type_hints(hint)
        fields = {field.name: schema_of(hints[field.name], records) for field in dataclasses.fields(hint)}
        records[hint.__name__] = {"type": "object", "description": " ".join((hint.__doc__ or "").split()), "properties": fields,
                                  "required": list(fields), "additionalProperties": False}
    return {"$ref": f"#/$defs/{hint.__name__}"}


def generate() -> str:
    records: dict[str, Any] = {}
    top = schema_of(precision_records.PrecisionReport, records)
    data = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"ascend-fuse precision, schema {precision_records.SCHEMA}",
            **top, "$defs": records}
    return json.dumps(data, indent=1) + "\n"


if __name__ == "__main__":
    OUTPUT.write_text(generate())
