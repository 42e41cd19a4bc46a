"""Which grammar reads which language, and what is asked of its trees."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module

from tree_sitter import Language, Parser, Query

_PYTHON = """
(class_definition name: (identifier) @class.name) @class
(function_definition name: (identifier) @function.name) @function
(call function: [(identifier) @call (attribute attribute: (identifier) @call)])
(decorator [(identifier) @call (attribute attribute: (identifier) @call)])
(class_definition superclasses: (argument_list [(identifier) @call (attribute attribute: (identifier) @call)]))
(import_statement name: [(dotted_name) @import (aliased_import name: (dotted_name) @import)])
(import_from_statement) @from
"""
_JAVASCRIPT = """
(class_declaration name: (_) @class.name) @class
[(function_declaration name: (identifier) @function.name)
 (generator_function_declaration name: (identifier) @function.name)] @function
(method_definition name: (_) @function.name) @function
(variable_declarator name: (identifier) @function.name
  value: [(arrow_function) (function_expression) (generator_function)]) @function
(assignment_expression left: [(identifier) @function.name (member_expression property: (_) @function.name)]
  right: [(arrow_function) (function_expression) (generator_function)]) @function
(pair key: (property_identifier) @function.name value: [(arrow_function) (function_expression)]) @function
(call_expression function: [(identifier) @call (member_expression property: (property_identifier) @call)])
(new_expression constructor: [(identifier) @call (member_expression property: (property_identifier) @call)])
(import_specifier name: (identifier) @call)
(import_statement source: (string) @quoted)
(export_statement source: (string) @quoted)
(call_expression function: [(identifier) (import)] @loads . arguments: (arguments . (string) @quoted)
  (#any-of? @loads "require" "import"))
"""
_TYPESCRIPT = (
    _JAVASCRIPT
    + """
(abstract_class_declaration name: (_) @class.name) @class
[(interface_declaration name: (_) @type.name) (enum_declaration name: (_) @type.name)
 (type_alias_declaration name: (_) @type.name)] @type
(type_annotation (type_identifier) @call)
"""
)
_GO = """
(function_declaration name: (identifier) @function.name) @function
(method_declaration name: (field_identifier) @function.name) @function
(type_spec name: (type_identifier) @type.name) @type
(call_expression function: [(identifier) @call (selector_expression field: (field_identifier) @call)])
(type_identifier) @call
(import_spec path: (_) @quoted)
"""
_SOURCES = {
    "python": ("tree_sitter_python", "language", _PYTHON),
    "javascript": ("tree_sitter_javascript", "language", _JAVASCRIPT),
    "typescript": ("tree_sitter_typescript", "language_typescript", _TYPESCRIPT),
    "tsx": ("tree_sitter_typescript", "language_tsx", _TYPESCRIPT),
    "go": ("tree_sitter_go", "language", _GO),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """A parser is not to be used by two threads at once, so each use makes its own; that costs microseconds."""

    language: Language
    query: Query

    def parser(self) -> Parser:
        """A parser of this language."""
        return Parser(self.language)


@cache
def grammar(name: str) -> Grammar | None:
    """The grammar of a language as ``domain.context.kinds`` names it; None where there is none."""
    if name not in _SOURCES:
        return None
    module, function, query = _SOURCES[name]
    language = Language(getattr(import_module(module), function)())
    return Grammar(language=language, query=Query(language, query))
