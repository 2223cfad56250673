/** The examples in the README of each package are right: they pass the type check, against the entry points of the packages. */

import { readdirSync, readFileSync } from 'node:fs';
import { basename, join, relative, resolve } from 'node:path';
import ts from 'typescript';
import { beforeAll, describe, expect, it } from 'vitest';

const PACKAGES = readdirSync('packages');
/** Packages that are commands alone; their READMEs show command lines. */
const WITHOUT_EXAMPLE = ['cli', 'dashboard', 'ibverbs'];

const readmeOf = (name: string): string => readFileSync(join('packages', name, 'README.md'), 'utf8');

const examplesOf = (text: string): string[] => [...text.matchAll(/^```js\n(.*?)^```$/gms)].map(([, code]) => code);

/** Of the paragraph that describes the sources of a package: names of files and folders, by their form. */
function namesInside(text: string): string[] {
  const paragraph = /^\*\*Inside\*\*(.*?)\n\n/ms.exec(text)?.[1] ?? '';
  return [...paragraph.matchAll(/`([a-z][a-z-]*)`/g)].map(([, name]) => name);
}

/** By its path, what the compiler finds wrong in each program. Their parameters need no types. */
function complaintsAbout(programs: ReadonlyMap<string, string>): Map<string, string[]> {
  const { config } = ts.readConfigFile('tsconfig.json', ts.sys.readFile);
  const { options } = ts.convertCompilerOptionsFromJson(
    { ...config.compilerOptions, noEmit: true, emitDeclarationOnly: false, incremental: false, noImplicitAny: false },
    '.',
  );
  const host = ts.createCompilerHost(options);
  const { fileExists, readFile } = host;
  host.fileExists = (path) => programs.has(path) || fileExists(path);
  host.readFile = (path) => programs.get(path) ?? readFile(path);
  const getSourceFile = host.getSourceFile.bind(host);
  host.getSourceFile = (path, version, ...rest) => {
    const text = programs.get(path);
    return text === undefined ? getSourceFile(path, version, ...rest) : ts.createSourceFile(path, text, version);
  };
  const program = ts.createProgram([...programs.keys()], options, host);
  const complaintsIn = (file: ts.SourceFile): string[] =>
    [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)].map(
      ({ code, messageText }) => `TS${code} ${ts.flattenDiagnosticMessageText(messageText, ' ')}`,
    );
  return new Map([...programs.keys()].map((path) => [path, complaintsIn(program.getSourceFile(path)!)]));
}

/** Where an example would be a source of its package. */
const placeIn = (name: string, at: number | string): string => resolve('packages', name, 'src', `example-${at}.mts`);

const WRONG = `
import { openKv, serveKV } from '@rocev2/kv';
import { openDevice } from 'rocev2';
const device = await openDevice({ address: '127.0.0.1', udpport: 0 });
await openKv({ device, host, port: 7000 });
serveKV();
`;
const examples = PACKAGES.flatMap((name) =>
  examplesOf(readmeOf(name)).map((code, at) => [placeIn(name, at), code] as const),
);
const wrongPlace = placeIn('kv', 'wrong');

/** One program for all, because it parses all packages. */
let complaints: Map<string, string[]>;
beforeAll(() => {
  complaints = complaintsAbout(new Map([...examples, [wrongPlace, WRONG]]));
}, 180_000);

describe('the README of a package', () => {
  it.each(PACKAGES.filter((name) => !WITHOUT_EXAMPLE.includes(name)))('of %s has an example', (name) => {
    expect(examplesOf(readmeOf(name))).not.toEqual([]);
  });

  it.each(examples.map(([path]) => relative('.', path)))('has an example that passes the type check: %s', (path) => {
    expect(complaints.get(resolve(path))).toEqual([]);
  });

  it.each(PACKAGES)('of %s describes files and folders that exist', (name) => {
    const sources = readdirSync(join('packages', name, 'src'), { recursive: true, encoding: 'utf8' });
    const folders = readdirSync(join('packages', name));
    const known = new Set([...sources.map((path) => basename(path, '.ts')), ...folders, ...PACKAGES]);
    const named = namesInside(readmeOf(name));
    expect(named).not.toEqual([]);
    expect(named.filter((word) => !known.has(word))).toEqual([]);
  });
});

describe('the check itself', () => {
  it('finds names that are not exported, unknown options and names without a declaration', () => {
    expect(complaints.get(wrongPlace)!.map((complaint) => /^TS\d+/.exec(complaint)?.[0])).toEqual([
      'TS2724',
      'TS2561',
      'TS18004',
    ]);
  });

  it('reads examples, and names of files', () => {
    const text =
      '```js\na();\n```\n\n**Inside**: `lock`, `lease-word` and `RemoteMemory`, `bin/x.js`.\n\n**Tests**: `none`\n';
    expect(examplesOf(text)).toEqual(['a();\n']);
    expect(namesInside(text)).toEqual(['lock', 'lease-word']);
  });
});
