// Makes the JSON Schemas of the documents of --json: for each `defineDocument<TYPE>('NAME')` and `defineLines<TYPE>('NAME')` in the sources of a
// package, `schemas/NAME.json` of that package, from TYPE and its comments.
//
//     npm run schemas              # writes them
//     npm run schemas -- --check   # fails when they are not those of the types
//
// Types are read by ts-json-schema-generator. A type that zod infers is taken from its zod schema. A bigint is a decimal string.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
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
import { packageFolders } from './packages.js';

const root = fileURLToPath(new URL('../', import.meta.url));
// The generator reads with a TypeScript of its own.
const ts = createRequire(import.meta.resolve('ts-json-schema-generator'))('typescript');

const sources = packageFolders()
  .map((folder) => join(root, folder, 'src'))
  .flatMap((folder) => readdirSync(folder, { recursive: true }).map((file) => join(folder, file)))
  .filter((file) => file.endsWith('.ts'));
const declaring = sources.filter((file) =>
  /\bdefine(Document|Lines)<|interface DocumentHead\b/.test(readFileSync(file, 'utf8')),
);

const config = {
  path: `{${declaring.join(',')}}`,
  tsconfig: join(root, 'tsconfig.json'),
  skipTypeCheck: true,
  additionalProperties: true,
  topRef: false,
  expose: 'none',
  jsDoc: 'extended',
};

/** The folder of the package that a source file belongs to. */
function packageOf(file) {
  const folder = dirname(file);
  return existsSync(join(folder, 'package.json')) ? folder : packageOf(folder);
}

/** A bigint, and the names of schemes, which extensions may add to. */
const strings = {
  supportsNode: (node) =>
    node.kind === ts.SyntaxKind.BigIntKeyword ||
    (ts.isTypeReferenceNode(node) && /^(RateControlName|RecoveryName)$/.test(node.typeName.getText())),
  createType: () => new StringType(),
};

/** `(typeof NAMES)[number]` and `keyof typeof TABLE`: in the order in which the names are written, which the compiler's unions do not keep. */
const named = (checker) => ({
  supportsNode: (node) =>
    (ts.isIndexedAccessTypeNode(node) || ts.isTypeOperatorNode(node)) && /\btypeof\b/.test(node.getText()),
  createType(node) {
    const union = checker.getTypeFromTypeNode(node);
    const values = new Set((union.isUnion() ? union.types : [union]).map(({ value }) => value));
    const written = checker.getTypeFromTypeNode(ts.isTypeOperatorNode(node) ? node.type : node.objectType);
    const inOrder = checker.isTupleType(written)
      ? checker.getTypeArguments(written).map(({ value }) => value)
      : written.getProperties().map(({ name }) => name);
    const known = inOrder.filter((value) => values.has(value));
    return new EnumType(node.getText(), [...new Set([...known, ...values])]);
  },
});

/** `z.infer<typeof schema>` and `z.input<typeof schema>`: a mark, which {@link resolve} takes away. */
const inferred = {
  supportsNode: (node) => ts.isTypeReferenceNode(node) && /^z\.(infer|input)$/.test(node.typeName.getText()),
  createType(node) {
    const [query] = node.typeArguments;
    const { fileName } = node.getSourceFile();
    const from = join(root, 'build', relative(root, fileName).replace(/ts$/, 'js'));
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
    const module = await import(pathToFileURL(from));
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
function document(name, head, { description: _, ...result }) {
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: `rocev2 ${name.replace('-', ' ')} --json`,
    ...result,
    properties: { ...head.properties, schema: { ...head.properties.schema, const: name }, ...result.properties },
    required: [...head.required, ...(result.required ?? [])],
  };
}

/** A line without a head. */
function line(name, { description: _, ...result }) {
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: `A line of rocev2 ${name.replace(/-line$/, '')} --json before the last`,
    ...result,
  };
}

/** The calls that declare documents and lines, and the head. */
function declarations(program) {
  const calls = [];
  let head;
  const visit = (node) => {
    if (ts.isInterfaceDeclaration(node) && node.name.text === 'DocumentHead') head = node;
    if (ts.isCallExpression(node) && /^define(Document|Lines)$/.test(node.expression.getText())) calls.push(node);
    ts.forEachChild(node, visit);
  };
  for (const file of declaring) visit(program.getSourceFile(file));
  return { head, calls };
}

/** The text of each schema by its path. */
async function schemas() {
  const program = createProgram(config);
  const parser = createParser(program, config, (chain) =>
    chain.addNodeParser(strings).addNodeParser(named(program.getTypeChecker())).addNodeParser(inferred),
  );
  const generator = new SchemaGenerator(program, parser, createFormatter(config), config);
  const schemaOf = async (node) => {
    const { $schema: _, definitions: __, ...schema } = generator.createSchemaFromNodes([node]);
    return resolve(schema);
  };
  const { head: headNode, calls } = declarations(program);
  const head = await schemaOf(headNode);
  const texts = new Map();
  for (const call of calls) {
    const name = call.arguments[0].text;
    const result = await schemaOf(call.typeArguments[0]);
    const schema = call.expression.text === 'defineLines' ? line(name, result) : document(name, head, result);
    const folder = join(packageOf(call.getSourceFile().fileName), 'schemas');
    texts.set(join(folder, `${name}.json`), `${JSON.stringify(schema, null, 2)}\n`);
  }
  return texts;
}

const texts = await schemas();
const folders = new Set([...texts.keys()].map(dirname));
if (process.argv.includes('--check')) {
  const files = [...folders]
    .filter(existsSync)
    .flatMap((folder) => readdirSync(folder).map((file) => join(folder, file)));
  const kept = new Map(files.map((file) => [file, readFileSync(file, 'utf8')]));
  const other = [...new Set([...texts.keys(), ...kept.keys()])].filter((file) => texts.get(file) !== kept.get(file));
  if (other.length > 0) {
    console.error(
      `schemas differ from the types: ${other.map((file) => relative(root, file)).join(', ')} (npm run schemas)`,
    );
    process.exitCode = 1;
  }
} else {
  for (const folder of folders) {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
  }
  for (const [file, text] of texts) writeFileSync(file, text);
  console.log(`wrote ${texts.size} schemas to ${[...folders].map((folder) => relative(root, folder)).join(', ')}`);
}
