import { checkKind, checkObject, checkOptions, checkWhole, type OptionNames, RoceError } from 'rocev2/internal/core';
import { KvClient } from './client.js';
import { codecOf } from './codec.js';
import { connectToOwner, type OpenKvOptions, RECONNECT_MS_MAX } from './live.js';
import { KvShards, type Shard } from './shards.js';

const OWNERS_MAX = 128;

/** One owner of {@link openKvShards}. */
export interface ShardOwner {
  /** TCP address. */
  readonly host: string;
  /** TCP port. */
  readonly port: number;
  /**
   * Determines its keys, so all readers must use the same name. An owner that moves keeps its keys with its
   * name. Default `host:port`.
   */
  readonly name?: string | undefined;
}

/** Options of {@link openKvShards}. */
export interface OpenKvShardsOptions<V> extends Omit<OpenKvOptions<V>, 'host' | 'port'> {
  /** 1 to 128, in any order. Readers that name other owners look for the same key elsewhere. */
  readonly owners: readonly ShardOwner[];
}

const OWNER_OPTIONS: OptionNames<ShardOwner> = { host: true, port: true, name: true };
const SHARDS_OPTIONS: OptionNames<OpenKvShardsOptions<unknown>> = {
  device: true,
  owners: true,
  codec: true,
  reconnectMs: true,
  signal: true,
  timeoutMs: true,
};

/**
 * Opens the stores of several owners as one. Every key belongs to one owner, by rendezvous hashing of the names. An
 * added owner gets about 1/n of the keys, without their values: nothing moves values. Each call that needs an
 * unreachable owner tries to reach it again, for `reconnectMs`, or once. Such a call rejects with ERR_ROCE_CONNECT;
 * other calls continue. Rejects as `openKv` does if no owner can be reached, and if a peer is not the owner of a store;
 * with ERR_ROCE_CONFLICT if two have one name.
 */
export async function openKvShards<V = Uint8Array>(options: OpenKvShardsOptions<V>): Promise<KvShards<V>> {
  checkOptions('openKvShards', options, SHARDS_OPTIONS);
  const { device, owners, codec, reconnectMs = 0, ...wait } = options;
  checkKind('device', device, typeof device?.createPd === 'function', 'a device of openDevice()');
  checkOwners(owners);
  checkWhole('reconnectMs', reconnectMs, 0, RECONNECT_MS_MAX);
  const values = codecOf(codec);
  const shards = owners.map((owner): Shard<V> => {
    const connect = () => connectToOwner(device, owner);
    return { name: nameOf(owner), client: KvClient.of(device, values, { connect, forMs: reconnectMs }) };
  });
  const store = new KvShards(shards);
  const reached = await Promise.allSettled(shards.map(({ client }) => client.reach(wait)));
  const errors = reached.filter((outcome) => outcome.status === 'rejected').map(({ reason }) => reason as unknown);
  const fatal = errors.length === shards.length ? errors[0] : errors.find((error) => !isDown(error));
  if (fatal === undefined) return store;
  await store.close();
  throw fatal;
}

function isDown(error: unknown): boolean {
  return error instanceof RoceError && (error.code === 'ERR_ROCE_CONNECT' || error.code === 'ERR_ROCE_TIMEOUT');
}

function nameOf({ name, host, port }: ShardOwner): string {
  return name ?? `${host}:${port}`;
}

function checkOwners(owners: readonly ShardOwner[]): void {
  checkKind('owners', owners, Array.isArray(owners), 'a list of { host, port }');
  checkWhole('the number of owners', owners.length, 1, OWNERS_MAX);
  const names = new Set<string>();
  for (const owner of owners) {
    checkObject('an owner', owner, '{ host, port }');
    checkOptions('an owner', owner, OWNER_OPTIONS);
    const name = nameOf(owner);
    checkKind('the name of an owner', name, typeof name === 'string' && name !== '', 'a text that is not empty');
    if (names.has(name))
      throw new RoceError('ERR_ROCE_CONFLICT', `two owners have the name '${name}'`, 'name each of them once');
    names.add(name);
  }
}
