/** What happens to one coded extent in virtual time: who reads what when fragments are lost or damaged, and what is left behind. */

import { describe, expect, it, vi } from 'vitest';
import { until } from '../../../test/support/virtual-time.js';
import type { CodeName } from '../src/coding/erasure-code.js';
import { FragmentStore } from '../src/coding/fragment-store.js';
import type { ExtentPlace } from '../src/messages.js';
import type { ExtentRecord } from '../src/metadata-schema.js';
import { dataIn } from '../src/record.js';
import { Cluster, type Machine } from './cluster.js';

const RECORDS = Array.from({ length: 16 }, (_, k) => Buffer.alloc(1000 * k + 1, k + 1));

/** A cluster with one stream, whose first extents are coded. */
class Coded {
  readonly cluster: Cluster;
  place!: ExtentPlace;

  private constructor(nodes: number, code: CodeName) {
    this.cluster = new Cluster(1, { nodes, code, keepDeletedMs: 0 });
  }

  static async with(
    nodes: number,
    code: CodeName,
    beforeCoding: (coded: Coded) => Promise<void> = async () => {},
  ): Promise<Coded> {
    const coded = new Coded(nodes, code);
    await coded.#begin(beforeCoding);
    return coded;
  }

  async #begin(beforeCoding: (coded: Coded) => Promise<void>): Promise<void> {
    const { cluster } = this;
    await this.#until(cluster.start());
    const manager = cluster.managerFrom('client');
    await this.#until(manager.call('createStream', { stream: 'log' }, 1000));
    const { writer } = await this.#until(cluster.writer('log', 'owner'));
    await this.#until(Promise.all(RECORDS.map((record) => writer.append(record))));
    await this.#until(writer.close());
    const locate = async () => {
      this.place = (await manager.call('locate', { stream: 'log' }, 1000)).extents[0];
    };
    await this.#until(locate());
    await beforeCoding(this);
    await this.eventually(async () => {
      await locate();
      return (
        this.place.coded !== undefined &&
        this.files(`${this.place.extent}.extent`).every(({ node }) => node === undefined)
      );
    });
  }

  #until<T>(outcome: Promise<T>): Promise<T> {
    return until(this.cluster.events, outcome);
  }

  /** Lets time pass until something holds, 10 s at most. */
  async eventually(holds: () => Promise<boolean>): Promise<void> {
    const wait = async () => {
      for (let k = 0; k < 500; k++) {
        if (await holds()) return;
        await this.cluster.sleep(20);
      }
      throw new Error('it did not come');
    };
    await this.#until(wait());
  }

  /** Machines that have a file whose name begins so. */
  files(name: string) {
    return this.cluster.machines.filter(({ disk }) => [...disk.files.keys()].some((file) => file.startsWith(name)));
  }

  machineOf(fragment: number) {
    return this.cluster.machineOf(this.place.coded!.fragments[fragment])!;
  }

  status() {
    return this.cluster.managerFrom('client').call('status', {}, 1000);
  }

  /** Readers have to ask the manager where the extent is. */
  forget(): void {
    const { extent, epoch, sealed } = this.place;
    this.place = { extent, epoch, sealed: sealed!, replicas: [] };
  }

  async record(): Promise<ExtentRecord> {
    const extents = await this.cluster.metadata.list('extent/');
    return JSON.parse(extents[0].value) as ExtentRecord;
  }

  async read(): Promise<{ records: Buffer[]; reconstructed: number }> {
    const reader = this.cluster.reader();
    const all = async () => {
      const records: Buffer[] = [];
      for await (const { head, bytes } of reader.scan([this.place])) records.push(Buffer.from(dataIn(bytes, head)));
      return records;
    };
    const records = await this.#until(all());
    return { records, reconstructed: reader.counters.reconstructed };
  }

  async readsAll(): Promise<number> {
    const { records, reconstructed } = await this.read();
    expect(records.length).toBeGreaterThan(5);
    expect(records).toEqual(RECORDS.slice(0, records.length));
    return reconstructed;
  }
}

describe('a coded extent', () => {
  it('is in fragments alone, each on a node of its own, in less space than three replicas', async () => {
    const coded = await Coded.with(9, 'rs-6-3');
    const { sealed, replicas, coded: fragments } = await coded.record();
    expect(replicas).toEqual([]);
    expect(new Set(fragments!.fragments.map(({ node }) => node)).size).toBe(9);
    expect(await coded.readsAll()).toBe(0);
    const used = coded.cluster.machines
      .flatMap(({ disk }) => [...disk.files])
      .filter(([name]) => name.startsWith(`${coded.place.extent}-`))
      .reduce((sum, [, { durable }]) => sum + durable.length, 0);
    expect(used).toBeLessThan(3 * sealed! + 9 * 4096);
    const status = await until(coded.cluster.events, coded.status());
    expect(status.extents).toMatchObject({ coded: 2, underReplicated: 0, unavailable: 0 });
    expect(status.nodesNeeded).toBe(9);
    expect(status.streams[0].coded).toBe(2);
  });

  it('is read as long as six of nine are left, and the error says how many there are', async () => {
    const coded = await Coded.with(9, 'rs-6-3');
    for (const lost of [0, 2, 7]) coded.cluster.stopNode(coded.machineOf(lost), true);
    expect(await coded.readsAll()).toBeGreaterThan(0);
    coded.cluster.stopNode(coded.machineOf(4), true);
    await expect(coded.read()).rejects.toThrow('too few fragments of extent 1 answer: 5');
  });

  it('gets a lost fragment back from the six others of its group', async () => {
    const coded = await Coded.with(17, 'lrc-12-2-2');
    const asked: number[] = [];
    for (const machine of coded.cluster.machines) {
      const { node } = machine;
      const { handle } = node!;
      node!.handle = ((method: 'readFragment', request: { extent: number; fragment: number }) => {
        if (method === 'readFragment' && request.extent === coded.place.extent) asked.push(request.fragment);
        return handle.call(node, method as never, request as never);
      }) as never;
    }
    const before = (await coded.record()).coded!.fragments[3];
    coded.cluster.stopNode(coded.machineOf(3), true);
    await coded.eventually(async () => (await coded.record()).coded!.fragments[3].making !== before.making);
    expect([...asked].sort((a, b) => a - b)).toEqual([0, 1, 2, 4, 5, 12]);
    coded.forget(); // Places have changed: it is asked for again.
    expect(await coded.readsAll()).toBe(0);
  });

  it('has damaged blocks made anew by whoever finds them', async () => {
    const coded = await Coded.with(9, 'rs-6-3');
    const name = `${coded.place.extent}-1-`;
    const [machine] = coded.files(name);
    const content = [...machine.disk.files].find(([file]) => file.startsWith(name))![1];
    const right = Buffer.from(content.durable);
    content.durable[5000] ^= 1;
    content.cached[5000] ^= 1;
    content.durable[right.length - 2] ^= 1; // The CRC of another block.
    content.cached[right.length - 2] ^= 1;
    expect(await coded.readsAll()).toBeGreaterThan(0);
    await coded.eventually(async () => content.durable.equals(right));
    expect(await coded.readsAll()).toBe(0);
  });

  it('leaves nothing behind of attempts that failed, nor when its stream is deleted', async () => {
    const finish = vi.spyOn(FragmentStore.prototype, 'finish').mockRejectedValueOnce(new Error('it fails once'));
    const coded = await Coded.with(10, 'rs-6-3');
    finish.mockRestore();
    expect((await coded.record()).coded!.fragments[0].making).toBeGreaterThan(1);
    const fragments = () =>
      coded.cluster.machines.flatMap(({ disk }) => [...disk.files.keys()]).filter((name) => name.endsWith('.fragment'));
    await coded.eventually(async () => {
      const { extents } = await coded.status();
      return extents.coded === extents.sealed && fragments().length === 9 * extents.coded;
    });
    await until(
      coded.cluster.events,
      coded.cluster.managerFrom('client').call('deleteStream', { stream: 'log' }, 1000),
    );
    await coded.eventually(async () => fragments().length === 0);
  });

  it('takes an old replica in when too few fragments are left, and codes it again when there are nodes', async () => {
    let holder: Machine | undefined;
    const coded = await Coded.with(10, 'rs-6-3', async ({ cluster, place }) => {
      holder = cluster.machineOf(place.replicas[0]);
      cluster.stopNode(holder!, false);
    });
    const lost = [0, 1, 2, 3].map((fragment) => coded.machineOf(fragment));
    for (const machine of lost) coded.cluster.stopNode(machine, false);
    await expect(coded.read()).rejects.toThrow('too few fragments');
    // The manager notices; before that it thinks that nobody needs the replica.
    await coded.eventually(async () => (await coded.status()).extents.unavailable > 0);
    void coded.cluster.startNode(holder!);
    await coded.eventually(async () => (await coded.record()).replicas.length === 3);
    coded.forget();
    await coded.readsAll();
    for (const machine of lost) void coded.cluster.startNode(machine);
    await coded.eventually(async () => (await coded.record()).coded !== undefined);
    expect((await coded.record()).replicas).toEqual([]);
  });
});
