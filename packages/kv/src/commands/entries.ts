import { CommandFailure, defineDocument, EXIT_FAILED, type Output } from '@rocev2/command';
import { type KvReaderOptions, withReader } from './reader.js';

const KV_GET_DOCUMENT = defineDocument<KvEntryResult>('kv-get');
const KV_SET_DOCUMENT = defineDocument<KvSetResult>('kv-set');
const KV_LIST_DOCUMENT = defineDocument<KvListResult>('kv-list');

/** The fields of `kv get --json` and of each entry of `kv list --json`. */
export interface KvEntryResult {
  /** The key, as UTF-8. */
  readonly key: string;
  /** The value in base64. */
  readonly base64: string;
  /** The same as text; missing if it is not UTF-8. */
  readonly text?: string;
  /** For `kv set --if-version`. */
  readonly version: number;
}

/** The fields of `kv set --json`. */
export interface KvSetResult {
  /** As it was given, UTF-8. */
  readonly key: string;
  /** The version that was written. */
  readonly version: number;
}

/** The fields of `kv list --json`. */
export interface KvListResult {
  /** The entries, in no order. */
  readonly entries: readonly KvEntryResult[];
}

export interface KvSetOptions extends KvReaderOptions {
  readonly ttl?: number;
  readonly ifVersion?: number;
}

export async function runKvGet(host: string, key: string, options: KvReaderOptions, output: Output): Promise<void> {
  const entry = await withReader(host, options, (kv) => kv.getEntry(key));
  if (entry === undefined) throw new CommandFailure(EXIT_FAILED, `there is no entry '${key}'`);
  const result = resultOf(key, entry);
  output.line(result.text ?? result.base64);
  output.document(KV_GET_DOCUMENT, result);
}

export async function runKvSet(
  host: string,
  [key, value]: readonly [string, string],
  { ttl, ifVersion, ...options }: KvSetOptions,
  output: Output,
): Promise<void> {
  const bytes = Buffer.from(value);
  const terms = ttl === undefined ? {} : { ttlMs: ttl / 1e6 };
  const version = await withReader(host, options, (kv) =>
    ifVersion === undefined ? kv.set(key, bytes, terms) : kv.compareAndSet(key, ifVersion, bytes, terms),
  );
  if (version === undefined) throw new CommandFailure(EXIT_FAILED, `the entry '${key}' has another version`);
  output.line(`version ${version}`);
  output.document(KV_SET_DOCUMENT, { key, version });
}

export async function runKvList(host: string, prefix: string, options: KvReaderOptions, output: Output): Promise<void> {
  const entries = await withReader(host, options, async (kv) => {
    const found: KvEntryResult[] = [];
    for await (const [key, entry] of kv.entries({ prefix })) found.push(resultOf(key.toString(), entry));
    return found;
  });
  output.table(
    [
      { title: 'key', align: 'left' },
      { title: 'version', align: 'right' },
      { title: 'value', align: 'left' },
    ],
    entries.map(({ key, version, text, base64 }) => [key, version, text ?? base64]),
  );
  output.document(KV_LIST_DOCUMENT, { entries });
}

function resultOf(
  key: string,
  { value, version }: { readonly value: Uint8Array; readonly version: number },
): KvEntryResult {
  const bytes = Buffer.from(value);
  const text = bytes.toString();
  return { key, base64: bytes.toString('base64'), version, ...(Buffer.from(text).equals(bytes) && { text }) };
}
