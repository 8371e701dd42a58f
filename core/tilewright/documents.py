"""JSON documents that commands print: typed models. Their schemas follow from their fields and from figures."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    SerializerFunctionWrapHandler,
    create_model,
    model_serializer,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from tilewright.figures import Sheet
from tilewright.schema.origin import Origin
from tilewright.values import Model


class Document(Model):
    """Part of a JSON document: the figures of some views of sheets, then its own keys."""

    model_config = ConfigDict(extra="allow", defer_build=True)  # most commands print none, and use few kinds
    _figures: ClassVar[tuple[tuple[Sheet, str], ...]] = ()
    """Views of sheets whose figures are keys of it, too."""
    _optional: ClassVar[tuple[str, ...]] = ()
    """Keys that a document leaves out if their value is None. All others are always there."""
    _open: ClassVar[bool] = False
    """Whether it has further keys, such as the choices of a space."""

    def data(self) -> dict[str, Any]:
        """Return the plain data that is printed."""
        data = self.model_dump(mode="json", by_alias=True)
        return {key: value for key, value in data.items() if value is not None or key not in self._optional}

    def model_post_init(self, context: Any) -> None:
        """Check that it has the figures of its views, and no others."""
        keys = {key for sheet, view in self._figures for key in sheet.keys(view)}
        given = set(self.model_extra or ())
        if keys - given or (given - keys and not self._open):
            raise TypeError(f"{type(self).__name__} has other figures: {', '.join(sorted(keys ^ given))}")

    @model_serializer(mode="wrap")
    def _figures_first(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        data: dict[str, Any] = serialize(self)
        return {key: data[key] for key in self.model_extra or ()} | data

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Describe what is printed; later versions may add keys."""
        schema = super().__get_pydantic_json_schema__(core, handler)
        whole = handler.resolve_ref_schema(schema)
        fields: dict[str, Any] = {
            key: (figure.kind, Field(description=figure.meaning))
            for sheet, view in cls._figures
            for key, figure in sheet.view(view).items()
        }
        figures = handler.resolve_ref_schema(handler(create_model("Figures", **fields).__pydantic_core_schema__))
        properties = figures.get("properties", {}) | whole.get("properties", {})
        for field in properties.values():
            field.pop("title", None)
        required = [key for key in properties if key not in cls._optional]
        whole |= {"properties": properties, "required": required}
        whole.pop("additionalProperties", None)
        return schema


class Output(Document):
    """JSON document of a command. Each kind has a field `kind` with its name."""

    schema_version: Literal[1] = 1
    """Version of the document's form. Later versions of Tilewright may add keys, but remove none."""


class FileData:
    """Annotation of plain data that has the form of a file: the schema is that of its model."""

    def __init__(self, model: type[BaseModel]) -> None:
        self.model = model

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Take the data unchanged; JSON schemas describe the branch for JSON."""
        return core_schema.json_or_python_schema(
            json_schema=handler.generate_schema(self.model),
            python_schema=handler(source),
            serialization=core_schema.plain_serializer_function_ser_schema(_unchanged),
        )


def _unchanged(value: Any) -> Any:
    return value


OriginData = Annotated[dict[str, Any], FileData(Origin)]
"""Place of a layer in the network's file, without absent parts."""
