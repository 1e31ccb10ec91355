import ts from 'typescript';

export type Schema = Readonly<Record<string, unknown>>;

/** Tags whose text is JSON, and which stand in a schema as they stand in a docstring. */
const TAGS = ['minimum', 'maximum', 'minLength', 'maxLength', 'minItems', 'maxItems', 'items'];

/** Makes JSON Schemas of TypeScript types that JSON can hold. Throws for any other. */
export class SchemaMaker {
  readonly #checker: ts.TypeChecker;
  /** Whether objects take no other fields than theirs. */
  readonly #closed: boolean;
  readonly #definitions = new Map<string, Schema>();
  #depth = 0;

  constructor(checker: ts.TypeChecker, { closed }: { readonly closed: boolean }) {
    this.#checker = checker;
    this.#closed = closed;
  }

  /** The schema of a type; interfaces below the first are put among the {@link definitions}, and referred to. */
  schemaOf(type: ts.Type): Schema {
    if (type.isStringLiteral() || type.isNumberLiteral()) return { const: type.value };
    if (type.flags & ts.TypeFlags.BooleanLiteral) return { const: this.#checker.typeToString(type) === 'true' };
    if (type.flags & ts.TypeFlags.String) return { type: 'string' };
    if (type.flags & ts.TypeFlags.Number) return { type: 'number' };
    if (type.flags & ts.TypeFlags.Boolean) return { type: 'boolean' };
    if (type.isUnion()) return this.#union(type.types.filter(({ flags }) => !(flags & ts.TypeFlags.Undefined)));
    if (this.#checker.isTupleType(type)) {
      const items = this.#checker.getTypeArguments(type as ts.TypeReference);
      const { length } = items;
      return { type: 'array', prefixItems: items.map((item) => this.schemaOf(item)), minItems: length, items: false };
    }
    if (this.#checker.isArrayType(type)) {
      const [item] = this.#checker.getTypeArguments(type as ts.TypeReference);
      if (item) return { type: 'array', items: this.schemaOf(item) };
    }
    if (type.flags & ts.TypeFlags.Object) return this.#named(type);
    throw new Error(`${this.#checker.typeToString(type)} is nothing that JSON holds`);
  }

  /** `$defs`, where there are any. */
  definitions(): Schema {
    if (this.#definitions.size === 0) return {};
    const sorted = [...this.#definitions].sort(([a], [b]) => (a < b ? -1 : 1));
    return { $defs: Object.fromEntries(sorted) };
  }

  #union(types: readonly ts.Type[]): Schema {
    const [only] = types;
    if (only && types.length === 1) return this.schemaOf(only);
    if (types.every((type) => type.isStringLiteral())) {
      // The compiler keeps them in an order of its own.
      return { type: 'string', enum: types.map((type) => type.value).sort() };
    }
    if (types.every(({ flags }) => flags & ts.TypeFlags.BooleanLiteral)) return { type: 'boolean' };
    return { oneOf: types.map((type) => this.schemaOf(type)) };
  }

  #named(type: ts.Type): Schema {
    const symbol = type.getSymbol();
    const isFirst = this.#depth === 0;
    this.#depth++;
    const schema = { ...describedBy(symbol, this.#checker), ...this.#object(type) };
    this.#depth--;
    const name = symbol?.getName() ?? '';
    // Generic ones differ by what they are made with.
    const isPlain = type.isClassOrInterface() && !type.typeParameters;
    if (isFirst || !isPlain) return schema;
    this.#definitions.set(name, schema);
    return { $ref: `#/$defs/${name}` };
  }

  #object(type: ts.Type): Schema {
    const properties: Record<string, Schema> = {};
    const required: string[] = [];
    for (const symbol of this.#checker.getPropertiesOfType(type)) {
      const name = symbol.getName();
      const schema = this.schemaOf(this.#checker.getTypeOfSymbol(symbol));
      properties[name] = { ...schema, ...describedBy(symbol, this.#checker) };
      if (!(symbol.flags & ts.SymbolFlags.Optional)) required.push(name);
    }
    const more: Schema = this.#closed ? { additionalProperties: false } : {};
    return { type: 'object', properties, ...(required.length > 0 && { required }), ...more };
  }
}

/** What a docstring says: its text, and its tags as bounds. */
function describedBy(symbol: ts.Symbol | undefined, checker: ts.TypeChecker): Schema {
  if (!symbol) return {};
  const text = textOf(symbol.getDocumentationComment(checker));
  const described: Record<string, unknown> = text === '' ? {} : { description: text };
  for (const tag of symbol.getJsDocTags(checker)) {
    const given = textOf(tag.text ?? []);
    if (tag.name === 'integer') described.type = 'integer';
    else if (tag.name === 'pattern' || tag.name === 'format') described[tag.name] = given;
    else if (TAGS.includes(tag.name)) described[tag.name] = JSON.parse(given) as unknown;
    else throw new Error(`the tag @${tag.name} of ${symbol.getName()} is none of a schema's`);
  }
  return described;
}

/** In one line, with the names that links are to. */
function textOf(parts: readonly ts.SymbolDisplayPart[]): string {
  return ts
    .displayPartsToString([...parts])
    .replace(/\{@link (\w+)\}/g, '`$1`')
    .replace(/\s+/g, ' ')
    .trim();
}
