"""The facts of a FlatBuffers schema, learnt from a generated Python module by watching what its classes do.

`schema_facts(module)` returns `{"enums": {name: {value name: number}}, "tables": {name: {field: fact}}}`. A fact is
`(slot, type, default)`: the number of the field in the vtable, its type as a word ("int32", "string", "[ubyte]",
"Buffer", "[Tensor]", "union"), and the value of an absent scalar. Names of fields are compared without case and
underscores, since generators of different versions spell them differently.
"""

import inspect

from flatbuffers import number_types

_SCALARS = {
    number_types.BoolFlags: "bool", number_types.Int8Flags: "int8", number_types.Uint8Flags: "uint8",
    number_types.Int16Flags: "int16", number_types.Uint16Flags: "uint16", number_types.Int32Flags: "int32",
    number_types.Uint32Flags: "uint32", number_types.Int64Flags: "int64", number_types.Uint64Flags: "uint64",
    number_types.Float32Flags: "float32", number_types.Float64Flags: "float64",
}
_SUFFIXES = ("AsNumpy", "IsNone", "Length")
_UNION_VALUE = 7


def schema_facts(module):
    classes = {name: value for name, value in vars(module).items() if inspect.isclass(value)}
    tables = {name: value for name, value in classes.items() if hasattr(value, "Init")}
    enums = {name: _enum(value) for name, value in classes.items()
             if not hasattr(value, "Init") and name + "T" not in classes and not _is_object_api(name, tables)}
    with _Watched(tables):
        return {"enums": enums, "tables": {name: _fields(value) for name, value in tables.items()}}


def _is_object_api(name, tables):
    return name.endswith("T") and name[:-1] in tables


def _enum(cls):
    return {name: value for name, value in vars(cls).items() if not name.startswith("_")}


def _fields(cls):
    names = [name for name, value in vars(cls).items() if inspect.isfunction(value) and not _is_machinery(name, cls)]
    return {name.lower(): _fact(cls, name) for name in names}


def _is_machinery(name, cls):
    if name == "Init" or name.startswith(("GetRootAs", "_")) or name.endswith("BufferHasIdentifier"):
        return True
    return any(name.endswith(suffix) and hasattr(cls, name[: -len(suffix)]) for suffix in _SUFFIXES)


def _fact(cls, name):
    is_vector = hasattr(cls, name + "Length")
    arguments = [0] if is_vector else []
    reader = cls()
    reader._tab = absent = _Tab(present=False)
    default = getattr(reader, name)(*arguments)
    reader._tab = present = _Tab(present=True)
    result = getattr(reader, name)(*arguments)
    kind = result.watched_name if hasattr(result, "watched_name") else present.kind
    assert absent.slot == present.slot
    if is_vector:
        return present.slot, f"[{kind}]", None
    return present.slot, kind, default if kind in _SCALARS.values() else None


class _Tab:
    """Stands in for flatbuffers.Table: remembers which slot was asked for and how it was read."""

    def __init__(self, present):
        self.Bytes, self.Pos, self._present = b"\0" * 64, 0, present
        self.slot = self.kind = None

    def Offset(self, vtable_offset):
        self.slot = (vtable_offset - 4) // 2
        return 8 if self._present else 0

    def Get(self, flags, _offset):
        self.kind = _SCALARS[flags]
        return 0

    def String(self, _offset):
        self.kind = "string"
        return b""

    def Union(self, _table, _offset):
        self.kind = "union"

    def Vector(self, _offset):
        return 0

    def VectorLen(self, _offset):
        return 1

    def Indirect(self, offset):
        return offset


class _Watched:
    """While open, a table object made by a reader knows its own class's name as `watched_name`."""

    def __init__(self, tables):
        self._tables = tables

    def __enter__(self):
        for name, cls in self._tables.items():
            cls.watched_name = name
        return self

    def __exit__(self, *_):
        for cls in self._tables.values():
            del cls.watched_name
