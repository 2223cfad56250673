/** What `@rocev2/rpc` must do, wherever the NIC runs. */

import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import type * as sourceRpc from '../../packages/rpc/src/index.js';
import type { RpcError, ServeOptions, StandardSchema } from '../../packages/rpc/src/index.js';
import { connectionPairs, type PairsUnderTest } from '../../packages/rpc/test/pair.js';
import { eventually } from '../support/eventually.js';

export interface RpcUnderTest extends PairsUnderTest {
  /** `@rocev2/rpc` of the same copy as the rest. */
  readonly rpc: typeof sourceRpc;
}

const bytes = z.custom<Uint8Array>((value) => value instanceof Uint8Array);
/** A schema without any library. */
const even: StandardSchema<number> = {
  '~standard': {
    version: 1,
    vendor: 'test',
    validate: (value) =>
      typeof value === 'number' && value % 2 === 0 ? { value } : { issues: [{ message: 'it is not even' }] },
  },
};

export function rpcContract(title: string, { rpc, ...under }: RpcUnderTest): void {
  const { connectRpc, defineService, RpcError, serveRpc } = rpc;
  const service = defineService({
    add: { input: z.object({ a: z.number(), b: z.number() }), output: z.number() },
    double: { input: even, output: z.number().transform((n) => `${n}`) },
    reverse: {
      input: z.object({ name: z.string(), data: bytes }),
      output: z.object({ name: z.string(), data: bytes }),
    },
    fail: { input: z.string(), output: z.null() },
    wait: { input: z.null(), output: z.null() },
    lie: { input: z.null(), output: z.number() },
    count: { input: z.number(), output: z.number(), stream: 'output' },
    sum: { input: z.number(), output: z.number(), stream: 'input' },
    blocks: { input: bytes, output: bytes, stream: 'both' },
    first: { input: z.number(), output: z.number(), stream: 'both' },
  });

  describe(title, () => {
    const pair = connectionPairs(under);

    async function rig(
      options: ServeOptions = {},
      seen: { aborted: string[]; produced: number } = { aborted: [], produced: 0 },
    ) {
      const { server, client } = await pair();
      const served = serveRpc(
        server,
        service,
        {
          add: ({ a, b }) => a + b,
          double: (n) => 2 * n,
          reverse: async ({ name, data }) => ({ name, data: Uint8Array.from(data).reverse() }),
          fail: (how) => {
            if (how === 'coded') throw new RpcError('NO_SPACE', 'the disk is full');
            throw new TypeError('secret of the server');
          },
          wait: (_, { signal }) =>
            new Promise<null>((resolve) => {
              signal.addEventListener('abort', () => {
                seen.aborted.push((signal.reason as RpcError).remoteCode ?? (signal.reason as Error).name);
                resolve(null);
              });
            }),
          lie: () => 'no number' as unknown as number,
          count: async function* (to) {
            for (let n = 0; n < to; n++) {
              seen.produced++;
              yield n;
            }
          },
          sum: async (numbers) => {
            let sum = 0;
            for await (const n of numbers) sum += n;
            return sum;
          },
          blocks: async function* (blocks) {
            for await (const block of blocks) yield block;
          },
          first: async function* (numbers) {
            for await (const n of numbers) {
              yield n;
              break;
            }
          },
        },
        options,
      );
      const caller = connectRpc(client, service);
      return { served, caller, methods: caller.methods, server, client, seen };
    }

    it('calls methods side by side, and the schemas make of values what they say', async () => {
      const { methods, served } = await rig();
      const sums = await Promise.all(Array.from({ length: 200 }, (_, i) => methods.add({ a: i, b: 1 })));
      expect(sums).toEqual(Array.from({ length: 200 }, (_, i) => i + 1));
      const doubled: string = await methods.double(4);
      expect(doubled).toBe('8');
      await eventually(() => served.counters().done === 201);
      expect(served.counters()).toMatchObject({ calls: 201, failed: 0 });
    });

    it('a caller that gives up while its output is being read hears of it once, and nobody else does', async () => {
      const { methods } = await rig();
      const input = { name: 'x', data: Buffer.alloc(6_000_000) };
      let late = 0;
      // Somewhere among these times the answer has come, and its bytes have not.
      for (let timeoutMs = 1, isDone = false; !isDone; timeoutMs *= 1.3) {
        isDone = await methods.reverse(input, { timeoutMs }).then(
          () => true,
          ({ code }) => {
            expect(code).toBe('ERR_ROCE_TIMEOUT');
            late++;
            return false;
          },
        );
      }
      expect(late).toBeGreaterThan(0);
      expect(await methods.add({ a: 1, b: 1 })).toBe(2);
    });

    it('carries small and large bytes, and strings that look like the marks of bytes', async () => {
      const { methods, client } = await rig();
      for (const length of [0, 1, 1000, 65_000, 66_000, 3_000_000]) {
        const data = Buffer.alloc(length, 'rdma');
        const name = `\0${length}\0`;
        const back = await methods.reverse({ name, data });
        expect(back.name).toBe(name);
        expect(Buffer.from(back.data).equals(Buffer.from(data).reverse())).toBe(true);
      }
      expect(client.device.counters().tx_packets).toBeGreaterThan(0);
    });

    it('errors carry their code across; what was not meant for callers does not cross', async () => {
      const thrown: unknown[] = [];
      const { methods, served } = await rig({ onError: (error) => thrown.push(error) });
      await expect(methods.fail('coded')).rejects.toMatchObject({
        code: 'ERR_ROCE_REMOTE',
        remoteCode: 'NO_SPACE',
        message: 'the disk is full',
      });
      const internal = await methods.fail('other').catch((error: RpcError) => error);
      expect(internal).toMatchObject({ remoteCode: 'INTERNAL' });
      expect((internal as Error).message).not.toMatch(/secret/);
      expect(thrown).toMatchObject([{ message: 'secret of the server' }]);
      await expect(methods.add({ a: 1, b: 'x' as unknown as number })).rejects.toMatchObject({
        remoteCode: 'INVALID',
        message: expect.stringMatching(/the input of add does not fit: b: /),
      });
      await expect(methods.double(3)).rejects.toMatchObject({ message: expect.stringMatching(/it is not even/) });
      await expect(methods.lie(null)).rejects.toMatchObject({
        remoteCode: 'INVALID',
        message: expect.stringMatching(/output of lie/),
      });
      expect(await methods.add({ a: 1, b: 2 })).toBe(3);
      expect(served.counters()).toMatchObject({ failed: 4, refused_peers: 0 });
    });

    it('says that the server has no such method, and which name is near', async () => {
      const { server, client } = await pair();
      const method = { input: z.null(), output: z.null() };
      serveRpc(server, defineService({ read: method, secret: method }), { read: () => null, secret: () => null });
      const { methods } = connectRpc(client, defineService({ toString: method, raed: method, 'a\u001b': method }));
      await expect(methods.toString(null)).rejects.toMatchObject({
        remoteCode: 'UNKNOWN_METHOD',
        message: expect.stringMatching(/the server has no method 'toString'$/), // No list: a caller learns no names.
      });
      await expect(methods.raed(null)).rejects.toMatchObject({
        remoteCode: 'UNKNOWN_METHOD',
        message: expect.stringMatching(/the server has no method 'raed'; did you mean 'read'\?$/),
      });
      await expect(methods['a\u001b'](null)).rejects.toMatchObject({ message: expect.not.stringContaining('\u001b') });
    });

    it('deadlines and aborts reach the method; the call ends at once', async () => {
      const { methods, caller, served, seen } = await rig();
      await expect(methods.wait(null, { timeoutMs: 50 })).rejects.toMatchObject({ code: 'ERR_ROCE_TIMEOUT' });
      const stop = new AbortController();
      const waiting = methods.wait(null, { signal: stop.signal });
      await eventually(() => served.counters().calls === 2);
      stop.abort(new Error('enough'));
      await expect(waiting).rejects.toMatchObject({ code: 'ERR_ROCE_ABORTED', cause: { message: 'enough' } });
      await eventually(() => served.counters().cancelled === 2 && caller.openCalls === 0);
      expect(seen.aborted).toHaveLength(2);
      expect(seen.aborted[1]).toBe('CANCELLED');
      await expect(methods.add({ a: 1, b: 1 }, { signal: AbortSignal.abort() })).rejects.toMatchObject({
        code: 'ERR_ROCE_ABORTED',
      });
      expect(served.counters().calls).toBe(2); // An aborted signal sends nothing.
      await expect(methods.wait(null, { timeout: 5 } as object)).rejects.toThrow(/did you mean 'timeoutMs'/);
    });

    it('more calls than the server takes wait at the caller', async () => {
      const { methods, served, caller } = await rig({ callsMax: 2 });
      const stop = new AbortController();
      const waiting = [1, 2].map(() => methods.wait(null, { signal: stop.signal }).catch(() => 'ended'));
      await eventually(() => served.counters().calls === 2);
      await expect(methods.add({ a: 1, b: 1 }, { timeoutMs: 30 })).rejects.toMatchObject({ code: 'ERR_ROCE_TIMEOUT' });
      const patient = methods.add({ a: 2, b: 2 });
      stop.abort();
      expect(await Promise.all(waiting)).toEqual(['ended', 'ended']);
      expect(await patient).toBe(4);
      await eventually(() => caller.openCalls === 0);
      await methods.add({ a: 1, b: 1 });
      expect(served.counters()).toMatchObject({ calls: 4, refused_peers: 0 });
    });

    it('streams outputs no further ahead than the caller reads, and stops when it leaves', async () => {
      const { methods, caller, seen } = await rig();
      const got: number[] = [];
      for await (const n of methods.count(100)) got.push(n);
      expect(got).toEqual(Array.from({ length: 100 }, (_, i) => i));
      seen.produced = 0;
      for await (const n of methods.count(1_000_000)) if (n === 20) break;
      await eventually(() => caller.openCalls === 0);
      expect(seen.produced).toBeLessThan(60);
    });

    it('a side that leaves a stream early keeps its connection, whatever was on its way', async () => {
      const { methods, caller, served } = await rig();
      for (let round = 0; round < 20; round++) {
        for await (const n of methods.count(1_000_000)) if (n === round) break;
        for await (const n of methods.first([...Array(100).keys()])) expect(n).toBe(0);
      }
      expect(await methods.add({ a: 1, b: 2 })).toBe(3);
      await eventually(() => caller.openCalls === 0);
      expect([served.connections, served.counters().refused_peers]).toEqual([1, 0]);
    });

    it('streams inputs, and both at once, also large ones', async () => {
      const { methods, caller } = await rig();
      async function* numbers() {
        for (let n = 1; n <= 1000; n++) yield n;
      }
      expect(await methods.sum(numbers())).toBe(500_500);
      const blocks = [10, 100_000, 3, 200_000].map((length) => Buffer.alloc(length, length & 255));
      const back: Uint8Array[] = [];
      for await (const block of methods.blocks(blocks)) back.push(block);
      expect(back.map((block, i) => blocks[i].equals(block))).toEqual([true, true, true, true]);
      async function* broken() {
        yield 1;
        throw new Error('the source broke');
      }
      await expect(methods.sum(broken())).rejects.toThrow('the source broke');
      await expect(methods.sum(['x' as unknown as number])).rejects.toMatchObject({ remoteCode: 'INVALID' });
      await eventually(() => caller.openCalls === 0);
    });

    it('refuses a value that is too long, on both sides, and goes on', async () => {
      const { methods } = await rig({ valueBytesMax: 100_000 });
      const tooLong = methods.reverse({ name: 'x', data: Buffer.alloc(100_001) });
      await expect(tooLong).rejects.toMatchObject({
        code: 'ERR_ROCE_LIMIT',
        message: expect.stringMatching(/valueBytesMax/),
      });
      expect(await methods.add({ a: 1, b: 2 })).toBe(3);
    });

    it('the end of the connection ends the calls, and what the handlers do', async () => {
      const { methods, caller, served, server, seen } = await rig();
      const calls = [methods.wait(null), methods.wait(null)].map((call) => call.catch((error: unknown) => error));
      await eventually(() => served.counters().calls === 2);
      expect(caller.isOpen).toBe(true);
      await served.close();
      for (const error of await Promise.all(calls))
        expect(error).toMatchObject({ code: expect.stringMatching(/^ERR_ROCE_/) });
      expect(server.isClosed).toBe(true);
      expect(seen.aborted).toHaveLength(2);
      expect(caller.isOpen).toBe(false);
      await expect(methods.add({ a: 1, b: 1 })).rejects.toBeInstanceOf(Error);
      await caller.close();
      expect([caller.openCalls, served.connections]).toEqual([0, 0]);
    });

    it('tells of a listener that fails, and throws nothing into the process', async () => {
      const told: unknown[] = [];
      const failure = new Error('the device is gone');
      const connections: AsyncIterable<never> = {
        [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(failure) }),
      };
      const ping = defineService({ ping: { input: z.null(), output: z.null() } });
      const served = serveRpc(connections, ping, { ping: () => null }, { onError: (...what) => told.push(what) });
      await eventually(() => told.length > 0);
      expect(told).toEqual([[failure, '']]);
      await served.close();
    });
  });
}
