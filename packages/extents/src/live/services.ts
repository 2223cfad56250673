/** Records travel by READ. */

import { defineService, type RpcClient, type Service } from '@rocev2/rpc';
import { type Fields, isCount, shape } from '@rocev2/rpc/internal';
import { CODE_NAMES, erasureCode } from '../coding/erasure-code.js';
import type { ManagerMethods, NodeMethods } from '../messages.js';
import { BLOCK_BYTES, blocksOf, RECORD_DATA_MAX, recordBytes } from '../record.js';

type Check = (value: unknown) => boolean;
type Checks<Methods> = { readonly [M in keyof Methods]: Readonly<Record<string, Check>> };
type RequestOf<Exchange> = Exchange extends readonly [infer Request, unknown] ? Request : never;
type OutputBytes<Methods> = { readonly [M in keyof Methods]?: (request: RequestOf<Methods[M]>) => number };

const LIST_MAX = 1 << 20;
/** Of a request or an answer: a report of 80,000 extents. */
export const REQUEST_LIMITS = { elementsMax: 1 << 18 } as const;
const TEXT_MAX = 1024;
/** A host, and a path of Linux. */
const FOLDER_MAX = TEXT_MAX + 4096;

const isText: Check = (value) => typeof value === 'string' && value.length <= TEXT_MAX;
const isFolder: Check = (value) => typeof value === 'string' && value.length <= FOLDER_MAX;
const isBytes: Check = (value) => value instanceof Uint8Array;
const isFlag: Check = (value) => typeof value === 'boolean';
const maybe = (check: Check): Check => {
  return (value) => value === undefined || check(value);
};
const listOf = (check: Check): Check => {
  return (value) => Array.isArray(value) && value.length <= LIST_MAX && value.every(check);
};
const object = (checks: Readonly<Record<string, Check>>): Check => {
  const fields = Object.entries(checks);
  return (value) => typeof value === 'object' && value !== null && hasFields(value as Fields, fields);
};
const isPlace = object({ node: isCount, address: isText });
const isReport = object({ extent: isCount, sealed: maybe(isCount), isStopped: maybe(isFlag) });

const isCode: Check = (value) => (CODE_NAMES as readonly unknown[]).includes(value);
const isOrigin = object({ stream: isText, epoch: isCount });
const SHAPE = { code: isCode, length: isCount, of: maybe(isOrigin) };
const FRAGMENTS_MAX = Math.max(...CODE_NAMES.map((name) => erasureCode(name).total));
const isIndex: Check = (value) => isCount(value) && (value as number) < FRAGMENTS_MAX;
const FRAGMENT = { extent: isCount, fragment: isIndex, making: isCount };
const isFragment = object(FRAGMENT);
const isFragmentPlace = object({ node: isCount, address: isText, fragment: isIndex, making: isCount });

function hasFields(value: Fields, checks: ReadonlyArray<readonly [name: string, check: Check]>): boolean {
  for (const [name, check] of checks) if (!check(value[name])) return false;
  return true;
}

const isVersion = object({ branch: isText, number: isCount });

const NODE: Checks<NodeMethods> = {
  inventory: {},
  deleted: { stream: isText },
  undelete: { extents: listOf(isCount) },
  create: { extent: isCount, epoch: isCount, of: maybe(isOrigin) },
  append: { extent: isCount, epoch: isCount, offset: isCount, record: isBytes, secondaries: listOf(isPlace) },
  fence: { extent: isCount, epoch: isCount },
  seal: { extent: isCount, epoch: isCount, length: isCount },
  read: { extent: isCount, offset: isCount, first: isCount, count: isCount },
  fetch: { extent: isCount, offset: isCount, bytesMax: isCount, isFenced: maybe(isFlag) },
  fetchPlain: { extent: isCount, offset: isCount, bytes: isCount },
  copy: { extent: isCount, epoch: isCount, length: isCount, from: listOf(isPlace), of: maybe(isOrigin) },
  complete: { extent: isCount, epoch: isCount, length: isCount, from: listOf(isPlace) },
  repair: { extent: isCount, offset: isCount, from: listOf(isPlace) },
  remove: { extent: isCount },
  noteVersion: { version: isVersion },
  encode: { extent: isCount, making: isCount, ...SHAPE, targets: listOf(isPlace) },
  writeFragment: { ...FRAGMENT, ...SHAPE, first: isCount, data: isBytes, crcs: listOf(isCount) },
  finishFragment: FRAGMENT,
  readFragment: { ...FRAGMENT, first: isCount, count: isCount },
  rebuild: { ...FRAGMENT, ...SHAPE, fragments: listOf(isFragmentPlace) },
  mendFragment: FRAGMENT,
};

const MARKS = { mark: maybe(isText), before: maybe(isText) };
const OWNED = { stream: isText, epoch: isCount };
const MANAGER: Checks<ManagerMethods> = {
  introduce: {},
  join: {
    node: isCount,
    cluster: isText,
    address: isText,
    lives: isCount,
    domain: isText,
    folder: maybe(isFolder),
    seen: maybe(isVersion),
    ...MARKS,
    trustFolder: maybe(isFlag),
  },
  refuse: { node: isCount, cluster: isText, folder: maybe(isFolder), reason: isText },
  report: {
    node: isCount,
    lives: isCount,
    freeBytes: isCount,
    usedBytes: isCount,
    damaged: isCount,
    repaired: isCount,
    readOnly: maybe(isText),
    journal: maybe(object({ bytes: isCount, usedBytes: isCount })),
    seen: maybe(isVersion),
    ...MARKS,
    replicas: listOf(isReport),
    fragments: listOf(isFragment),
  },
  createStream: { stream: isText },
  deleteStream: { stream: isText },
  openStream: { stream: isText, owner: isText, leaseMs: isCount, takeOver: isFlag },
  renew: { ...OWNED, leaseMs: isCount, owner: maybe(isText), address: maybe(isText) },
  release: OWNED,
  advance: { ...OWNED, extent: maybe(isCount), acked: isCount, suspects: listOf(isCount) },
  adopt: { ...OWNED, extents: listOf(isCount) },
  drop: { ...OWNED, extents: listOf(isCount) },
  owner: { stream: isText },
  locate: { stream: isText },
  cut: { stream: isText },
  locateExtent: { extent: isCount },
  recover: {},
  undelete: { stream: isText },
  accept: { extents: listOf(isCount) },
  status: {},
};

/** A block with its checksum as a number of JSON. */
const OUTPUT_BLOCK_BYTES = BLOCK_BYTES + 12;
const blockBytes = ({ count }: { readonly count: number }) =>
  Math.min(count, blocksOf(RECORD_DATA_MAX)) * OUTPUT_BLOCK_BYTES;
/** Of methods whose outputs are data. */
const NODE_OUTPUTS: OutputBytes<NodeMethods> = {
  read: blockBytes,
  readFragment: blockBytes,
  fetch: () => recordBytes(RECORD_DATA_MAX),
  fetchPlain: ({ bytes }) => Math.min(bytes, RECORD_DATA_MAX),
};

/** Each request names its node: another one may now listen at that address. */
export const NODE_SERVICE: Service = serviceOf(NODE, { common: { to: isCount }, outputs: NODE_OUTPUTS });
export const MANAGER_SERVICE: Service = serviceOf(MANAGER);

function serviceOf<Methods>(
  checks: Checks<Methods>,
  {
    common = {},
    outputs = {},
  }: { readonly common?: Readonly<Record<string, Check>>; readonly outputs?: OutputBytes<Methods> } = {},
): Service {
  const methods = Object.entries<Readonly<Record<string, Check>>>(checks as Record<string, Record<string, Check>>);
  return defineService(
    Object.fromEntries(
      methods.map(([name, own]) => {
        const fields = Object.entries({ ...common, ...own });
        const input = shape<object>(`request to ${name}`, (value) => hasFields(value, fields));
        const outputBytesMax = outputs[name as keyof Methods];
        return [name, { input, output: shape<object>('answer', () => true), outputBytesMax }];
      }),
    ),
  );
}

export type AnyMethods = Readonly<
  Record<string, (request: object, options: { readonly timeoutMs: number }) => Promise<object>>
>;

export function methodsOf(client: RpcClient<Service>): AnyMethods {
  return client.methods as unknown as AnyMethods;
}

export function handlersOf(
  service: Service,
  handle: (method: string, request: object) => Promise<object>,
): Record<string, (request: unknown) => Promise<object>> {
  return Object.fromEntries(
    Object.keys(service).map((name) => [name, (request: unknown) => handle(name, request as object)]),
  );
}
