/** The types that the packages publish: they are enough for programs that use it, and nothing in them is our own affair. */

import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import ts from 'typescript';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isBuilt } from '../e2e/executable.js';
import { manifestOfPackage, PACKAGE_FOLDERS, projectWithPackage, SPECIFIERS } from '../support/installed-package.js';
import { parseSource, sourceFiles } from './source-files.js';

const OPTIONS: ts.CompilerOptions = {
  strict: true,
  exactOptionalPropertyTypes: true,
  noEmit: true,
  skipLibCheck: false,
  target: ts.ScriptTarget.ES2023,
  lib: ['lib.es2023.d.ts', 'lib.esnext.disposable.d.ts'],
  types: ['node'],
  typeRoots: [resolve('node_modules/@types')],
};

/** The ways in which TypeScript finds the files of a package. */
const RESOLUTIONS: ReadonlyArray<readonly [name: string, options: ts.CompilerOptions]> = [
  ['node16', { module: ts.ModuleKind.Node16, moduleResolution: ts.ModuleResolutionKind.Node16 }],
  ['nodenext', { module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext }],
  ['bundler', { module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler }],
];

/** A program of a user: it must compile. */
const PROGRAM = `
import { Access, checkCompletion, type Connection, connect, listen, openDevice, type QueuePair, RoceError } from 'rocev2';
import { MemoryDevice, StorageServer } from 'rocev2/storage';

const device = await openDevice({ address: '127.0.0.1', udpPort: 0 });
const pd = await device.createPd();
const cq = await device.createCq(64);
const qp: QueuePair = await pd.createQp({ sendCq: cq });
const region = await pd.regMr(4096, Access.REMOTE_ALL);
qp.postSend({ opcode: 'RDMA_WRITE', sges: [region.sge()], remoteAddr: 0n, rkey: region.rkey });
for (const wc of cq.poll(16)) checkCompletion(wc);

const listener = await listen(device, { port: 0, region: Buffer.alloc(64) });
const connection: Connection = await connect(device, { host: '127.0.0.1', port: listener.port });
const before: bigint = await connection.fetchAdd(0, 1n);
const received: Uint8Array = (await connection.receive()).data;

await using server = await StorageServer.open({ disks: [new MemoryDevice(1 << 20)], host: '127.0.0.1', port: 0 });
const hint: string | undefined = new RoceError('ERR_ROCE_CLOSED', 'closed').hint;
console.log(before, received, server.port, hint);
`;

/** Another, which reaches for what is ours: each line must be refused. */
const TRESPASSER = `
import { type CompletionQueue, Connection, type QueuePair, type RdmaDevice } from 'rocev2';
export const link = (device: RdmaDevice) => device.link;
export const ring = (cq: CompletionQueue) => cq.ring;
export const done = (qp: QueuePair) => qp.sendDone;
export const made = () => new Connection();
`;

/** A third, whose every mistake is expected: one that passed would be a complaint. */
const MISTAKEN = `
import { openDevice, type QueuePair, type RdmaDevice, type WorkCompletion } from 'rocev2';
// @ts-expect-error: only what package.json exports can be imported
import {} from 'rocev2/build/src/index.js';
// @ts-expect-error: there is no such entry
import {} from 'rocev2/nothing';
// @ts-expect-error: a device needs an address
export const nowhere = openDevice({});
// @ts-expect-error: an engine of another name
export const engine = openDevice({ address: '127.0.0.1', engine: 'thread' });
// @ts-expect-error: a URL or a path
export const worker = openDevice({ address: '127.0.0.1', engine: 'worker', workerUrl: 1 });
// @ts-expect-error: an opcode that is none
export const posted = (qp: QueuePair) => qp.postSend({ opcode: 'SENT' });
// @ts-expect-error: a completion opcode that is none
export const isReceived = (wc: WorkCompletion) => wc.opcode === 'RECEIVE';
// @ts-expect-error: a status that is none
export const isFlushed = (wc: WorkCompletion) => wc.statusName === 'FLUSH_ERR';
// @ts-expect-error: an event that is none
export const onFatal = (device: RdmaDevice) => device.events.on('QP_FATL', () => {});
`;

const GENERIC = /KvOptions|KvShardsOptions|^StudyOptions/;

/**
 * A fourth passes undefined for every optional field of every type of options: its lines compile if the types say
 * `| undefined`, which `exactOptionalPropertyTypes` requires.
 */
function undefinedOptions(project: string): string {
  const used = SPECIFIERS.filter((name) => !/command|internal/.test(name));
  const lines = used.flatMap((specifier, i) => {
    const text = readFileSync(declarationOf(project, specifier), 'utf8');
    const names = new Set(text.match(/\b[A-Z]\w+(?:Options|Init|Attr|WorkRequest|Limits)\b(?=[ ,;}])/g));
    const checks = [...names].map((name) => {
      const refused = `Refuses<entry${i}.${name}${GENERIC.test(name) ? '<string>' : ''}>`;
      return `export const ${name}${i}: ${refused} extends [never] ? true : ${refused} = true;`;
    });
    return [`import type * as entry${i} from '${specifier}';`, ...checks];
  });
  return [
    'type Refuses<T> = [RefusesOf<T>];',
    'type RefusesOf<T> = T extends object ? { [K in keyof T]-?: {} extends Pick<T, K>',
    '  ? { [P in K]: undefined } extends Pick<T, K> ? never : K : never }[keyof T] : never;',
    ...lines,
  ].join('\n');
}

function declarationOf(project: string, specifier: string): string {
  const folder = PACKAGE_FOLDERS.find((path) => {
    const { name } = manifestOfPackage(path);
    return specifier === name || specifier.startsWith(`${name}/`);
  })!;
  const { name, exports } = manifestOfPackage(folder);
  const { types } = exports[`.${specifier.slice(name.length)}`] as Record<string, string>;
  return join(project, 'node_modules', name, types);
}

const PARSED = new Map<string, ts.SourceFile | undefined>();

/** The declarations of TypeScript and Node are the same for every resolution, and are parsed once. */
function hostWithMemory(): ts.CompilerHost {
  const host = ts.createCompilerHost(OPTIONS);
  const read = host.getSourceFile.bind(host);
  host.getSourceFile = (path, ...rest) => {
    if (!/\/node_modules\/(typescript|@types)\//.test(path)) return read(path, ...rest);
    if (!PARSED.has(path)) PARSED.set(path, read(path, ...rest));
    return PARSED.get(path);
  };
  return host;
}

/** Members of classes that are marked as internal, as `QueuePair.create`; constructors have no name. */
function internalMembers(file: ts.SourceFile): string[] {
  return file.statements.filter(ts.isClassDeclaration).flatMap((owner) =>
    owner.members
      .filter((member) => ts.getJSDocTags(member).some(({ tagName }) => tagName.text === 'internal'))
      .filter(({ name }) => name !== undefined)
      .map(({ name }) => `${owner.name!.text}.${name!.getText()}`),
  );
}

describe.runIf(isBuilt)('published types', () => {
  let project: string;
  beforeAll(() => {
    execFileSync('npm', ['run', 'declarations'], { stdio: 'ignore' });
    project = projectWithPackage();
  }, 300_000);
  afterAll(() => rmSync(project, { recursive: true, force: true }));

  it.each(RESOLUTIONS)(
    'under %s are enough for programs that use the package, and refuse mistakes and what is internal',
    (_, how) => {
      const programs = {
        'everything.ts': SPECIFIERS.map((name, i) => `export * as entry${i} from '${name}';`).join('\n'),
        'program.ts': PROGRAM,
        'trespasser.ts': TRESPASSER,
        'mistaken.ts': MISTAKEN,
        'undefined.ts': undefinedOptions(project),
      };
      for (const [name, text] of Object.entries(programs)) writeFileSync(join(project, name), text);
      const program = ts.createProgram(
        Object.keys(programs).map((name) => join(project, name)),
        { ...OPTIONS, ...how },
        hostWithMemory(),
      );
      // The programs and our declarations; those of Node and of other packages are their makers' affair.
      const checked = program.getSourceFiles().filter(({ fileName }) => fileName.startsWith(project));
      expect(checked.length).toBeGreaterThan(100);
      const complaints = [
        ...program.getOptionsDiagnostics(),
        ...checked.flatMap((file) => [
          ...program.getSyntacticDiagnostics(file),
          ...program.getSemanticDiagnostics(file),
        ]),
      ].map(
        ({ file, code, messageText }) =>
          `${relative(project, file?.fileName ?? '')} TS${code} ${ts.flattenDiagnosticMessageText(messageText, ' ')}`,
      );
      expect(complaints).toEqual([
        "trespasser.ts TS2339 Property 'link' does not exist on type 'RdmaDevice'.",
        "trespasser.ts TS2339 Property 'ring' does not exist on type 'CompletionQueue'.",
        "trespasser.ts TS2339 Property 'sendDone' does not exist on type 'QueuePair'.",
        "trespasser.ts TS2673 Constructor of class 'Connection' is private and only accessible within the class declaration.",
      ]);
    },
    180_000,
  );

  it('name the types of Node.js where a program lacks them', () => {
    const { peerDependencies, peerDependenciesMeta } = JSON.parse(readFileSync('package.json', 'utf8'));
    expect(peerDependencies).toEqual({ '@types/node': '>=20' });
    expect(peerDependenciesMeta).toEqual({ '@types/node': { optional: true } });
    writeFileSync(join(project, 'untyped.ts'), "export { openDevice } from 'rocev2';");
    const complaintsWith = (typeRoots: string[], types: string[]) =>
      ts
        .getPreEmitDiagnostics(
          ts.createProgram(
            [join(project, 'untyped.ts')],
            { ...OPTIONS, ...RESOLUTIONS[0][1], typeRoots, types },
            hostWithMemory(),
          ),
        )
        .map(({ code, messageText }) => `TS${code} ${ts.flattenDiagnosticMessageText(messageText, ' ')}`);
    const missing = "TS2688 Cannot find type definition file for 'node'.";
    expect(complaintsWith([], [])).toContainEqual(expect.stringContaining(missing));
    expect(complaintsWith(OPTIONS.typeRoots!, ['node']).join('\n')).not.toContain(missing);
  }, 180_000);

  it('have no member that is marked as internal', () => {
    const marked = sourceFiles().flatMap(internalMembers);
    expect(marked).toEqual(expect.arrayContaining(['RdmaDevice.link', 'QueuePair.sendDone', 'Connection.over']));
    const published = PACKAGE_FOLDERS.flatMap((folder) => {
      const dist = join(project, 'node_modules', manifestOfPackage(folder).name, 'dist');
      return readdirSync(dist, { recursive: true, encoding: 'utf8' })
        .filter((path) => path.endsWith('.d.ts'))
        .map((path) => parseSource(path, readFileSync(join(dist, path), 'utf8')));
    });
    expect(published.length).toBeGreaterThan(100);
    const members = published.flatMap((file) =>
      file.statements
        .filter(ts.isClassDeclaration)
        .flatMap((owner) => owner.members.map(({ name }) => `${owner.name!.text}.${name?.getText()}`)),
    );
    expect(members).toContain('QueuePair.postSend');
    expect(members.filter((name) => marked.includes(name))).toEqual([]);
    expect(published.filter(({ text }) => text.includes('@internal')).map(({ fileName }) => fileName)).toEqual([]);
  });
});
