// Makes schemas/*.json, the JSON Schemas of the documents of --json, from the types in src/cli/documents.ts and their comments:
//
//     npm run schemas              # writes them
//     npm run schemas -- --check   # fails when they are not those of the types
//
// Types are read by ts-json-schema-generator. A type that zod infers is taken from its zod schema. A bigint is a decimal string.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import {
  AnnotatedType,
  AnyType,
  createFormatter,
  createParser,
  createProgram,
  EnumType,
  SchemaGenerator,
  StringType,
} from 'ts-json-schema-generator';
import { z } from 'zod';

const root = fileURLToPath(new URL('../', import.meta.url));
const folder = join(root, 'schemas');
// The generator reads with a TypeScript of its own.
const ts = createRequire(import.meta.resolve('ts-json-schema-generator'))('typescript');

const config = {
  path: join(root, 'src/cli/documents.ts'),
  tsconfig: join(root, 'tsconfig.json'),
  type: 'SchemaSources',
  skipTypeCheck: true,
  additionalProperties: true,
  topRef: false,
  expose: 'none',
  jsDoc: 'extended',
};

/** A bigint, and the names of schemes, which extensions may add to. */
const strings = {
  supportsNode: (node) =>
    node.kind === ts.SyntaxKind.BigIntKeyword ||
    (ts.isTypeReferenceNode(node) && /^(RateControlName|RecoveryName)$/.test(node.typeName.getText())),
  createType: () => new StringType(),
};

/** `(typeof NAMES)[number]` and `keyof typeof TABLE`: whatever the compiler makes of them. */
const named = (checker) => ({
  supportsNode: (node) =>
    (ts.isIndexedAccessTypeNode(node) || ts.isTypeOperatorNode(node)) && /\btypeof\b/.test(node.getText()),
  createType(node) {
    const type = checker.getTypeFromTypeNode(node);
    return new EnumType(
      node.getText(),
      (type.isUnion() ? type.types : [type]).map(({ value }) => value),
    );
  },
});

/** `z.infer<typeof schema>` and `z.input<typeof schema>`: a mark, which {@link resolve} takes away. */
const inferred = {
  supportsNode: (node) => ts.isTypeReferenceNode(node) && /^z\.(infer|input)$/.test(node.typeName.getText()),
  createType(node) {
    const [query] = node.typeArguments;
    const from = relative(join(root, 'src'), node.getSourceFile().fileName).replace(/ts$/, 'js');
    const io = node.typeName.getText() === 'z.input' ? 'input' : 'output';
    return new AnnotatedType(new AnyType(), { zod: { from, name: query.exprName.getText(), io } }, false);
  },
};

/** Puts the schemas of zod where their marks are, and leaves unknown fields to newer versions. */
async function resolve(node) {
  if (node === null || typeof node !== 'object') return node;
  if (Array.isArray(node)) return Promise.all(node.map(resolve));
  if (node.zod !== undefined && typeof node.zod.from === 'string') {
    const { from, name, io } = node.zod;
    const module = await import(pathToFileURL(join(root, 'dist', from)));
    const { $schema: _, ...schema } = z.toJSONSchema(module[name], { target: 'draft-7', io, unrepresentable: 'any' });
    return withoutClosing(schema);
  }
  return Object.fromEntries(
    await Promise.all(Object.entries(node).map(async ([key, value]) => [key, await resolve(value)])),
  );
}

function withoutClosing(node) {
  if (node === null || typeof node !== 'object') return node;
  if (Array.isArray(node)) return node.map(withoutClosing);
  const entries = Object.entries(node).filter(([key, value]) => key !== 'additionalProperties' || value !== false);
  return Object.fromEntries(entries.map(([key, value]) => [key, withoutClosing(value)]));
}

/** The head's fields before those of the result. */
function document(name, head, result) {
  const { description: _, ...rest } = result;
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: `rocev2 ${name.replace('-', ' ')} --json`,
    ...rest,
    properties: { ...head.properties, schema: { ...head.properties.schema, const: name }, ...result.properties },
    required: [...head.required, ...(result.required ?? [])],
  };
}

async function schemas() {
  const program = createProgram(config);
  const parser = createParser(program, config, (chain) =>
    chain.addNodeParser(strings).addNodeParser(named(program.getTypeChecker())).addNodeParser(inferred),
  );
  const generator = new SchemaGenerator(program, parser, createFormatter(config), config);
  const { properties } = await resolve(generator.createSchema(config.type));
  const { head, 'decode-line': line, ...results } = properties;
  const files = Object.entries(results).map(([name, result]) => [name, document(name, head, result)]);
  const { description: _, ...lines } = line;
  return new Map([
    ...files,
    [
      'decode-line',
      {
        $schema: 'http://json-schema.org/draft-07/schema#',
        title: 'A line of rocev2 decode --json before the last',
        ...lines,
      },
    ],
  ]);
}

const texts = new Map(
  [...(await schemas())].map(([name, schema]) => [`${name}.json`, `${JSON.stringify(schema, null, 2)}\n`]),
);
if (process.argv.includes('--check')) {
  const kept = new Map(readdirSync(folder).map((file) => [file, readFileSync(join(folder, file), 'utf8')]));
  const other = [...new Set([...texts.keys(), ...kept.keys()])].filter((file) => texts.get(file) !== kept.get(file));
  if (other.length > 0) {
    console.error(`schemas differ from the types: ${other.join(', ')} (npm run schemas)`);
    process.exitCode = 1;
  }
} else {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  for (const [file, text] of texts) writeFileSync(join(folder, file), text);
  console.log(`wrote ${texts.size} schemas to ${relative(dirname(root), folder)}`);
}
