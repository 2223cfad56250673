/** What operations on memory that was registered once must do, wherever the NIC runs. */

import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Connection, ConnectionOptions, RdmaDevice } from '../../src/index.js';
import { Access } from '../../src/index.js';
import { eventually } from '../support/eventually.js';
import type { EngineUnderTest } from './connection-contract.js';

/** Registrations that the device asks its NIC for from now on. */
function registrationsOf(device: RdmaDevice): () => number {
  const command = vi.spyOn(device, 'command');
  return () => command.mock.calls.filter(([name]) => name === 'regMr').length;
}

export function registeredMemoryContract(
  name: string,
  { api, options, server: SERVER, client: CLIENT }: EngineUnderTest,
): void {
  const { connect, listen, openDevice } = api;
  const open: Array<{ close(): Promise<void> }> = [];

  function closeLater<T extends { close(): Promise<void> }>(thing: T): T {
    open.push(thing);
    return thing;
  }

  async function pair(serverOptions: ConnectionOptions = {}): Promise<{ server: Connection; client: Connection }> {
    const serverDevice = closeLater(await openDevice({ ...options, address: SERVER }));
    const clientDevice = closeLater(await openDevice({ ...options, address: CLIENT }));
    const listener = closeLater(await listen(serverDevice, { port: 0, ...serverOptions }));
    const [server, client] = await Promise.all([
      listener.accept({ timeoutMs: 20_000 }),
      connect(clientDevice, { host: SERVER, port: listener.port, timeoutMs: 20_000 }),
    ]);
    return { server, client };
  }

  describe(name, () => {
    afterEach(async () => {
      for (const thing of open.splice(0).reverse()) await thing.close();
    });

    it('sends, writes and reads a region or a slice of it, and registers nothing more; bytes are registered each time', async () => {
      const { server, client } = await pair({ region: 4096 });
      const region = await client.register(4096);
      const registrations = registrationsOf(client.device);
      region.bytes.write('hello', 1000);
      for (let i = 0; i < 20; i++) {
        await client.send(region.slice(1000, 5), { immediate: i });
        expect(await server.receive()).toMatchObject({ data: Buffer.from('hello'), immediate: i });
      }
      await client.write(region.slice(1000, 5), 100);
      const read = await client.read(region.slice(2000, 5), 100);
      expect(read.toString()).toBe('hello');
      expect(read.buffer).toBe(region.bytes.buffer);
      expect(region.bytes.toString('latin1', 2000, 2005)).toBe('hello');
      region.bytes.fill(7);
      await client.write(region);
      expect((await client.read(region)).equals(Buffer.alloc(4096, 7))).toBe(true);
      expect(registrations()).toBe(0);

      await client.send(Buffer.from('bytes'));
      await client.write(Buffer.from('bytes'));
      expect(registrations()).toBe(2);
    });

    it('registers memory of the program in place', async () => {
      const { server, client } = await pair();
      const own = client.device.allocate(64);
      const region = await client.register(own.subarray(8, 16));
      expect(region.length).toBe(8);
      own.write('in place', 8);
      await client.send(region);
      expect((await server.receive()).data.toString()).toBe('in place');
    });

    it('makes each packet from the memory as it is when the packet leaves', async () => {
      const { server, client } = await pair({ receiveDepth: 2 });
      const region = await client.register(3);
      region.bytes.write('one');
      for (let i = 0; i < 2; i++) await client.send(region);
      const third = client.send(region); // The peer has no receive for it: it is sent again and again.
      const refusals = () => client.device.counters().rnr_nak_received;
      await eventually(() => refusals() > 0);
      region.bytes.write('two');
      const before = refusals();
      await eventually(() => refusals() >= before + 2); // One may be for a packet that left before the change.
      for (const text of ['one', 'one', 'two']) expect((await server.receive()).data.toString()).toBe(text);
      await third;
    });

    it('a call that ends early leaves the memory to the NIC until it is released', async () => {
      const { server, client } = await pair({ receiveDepth: 2 });
      const region = await client.register(1);
      for (let i = 0; i < 2; i++) await client.send(region);
      const error = await client.send(region, { timeoutMs: 30 }).catch((failure: unknown) => failure);
      expect(error).toMatchObject({ code: 'ERR_ROCE_TIMEOUT' });
      let isReleased = false;
      const released = (error as { released: Promise<void> }).released.then(() => {
        isReleased = true;
      });
      await new Promise((resolve) => setImmediate(resolve));
      expect(isReleased).toBe(false);
      for (let i = 0; i < 3; i++) await server.receive();
      await released;
    });

    it('refuses what is closed, foreign, too short, too long, or not to be written, and goes on', async () => {
      const { server, client } = await pair({ region: 64, messageBytesMax: 64 });
      const region = await client.register(65);
      const outside = { code: 'ERR_ROCE_OUT_OF_RANGE' };
      for (const [offset, length] of [
        [0, 66],
        [60, 6],
        [-1, 1],
        [0, 1.5],
      ]) {
        expect(() => region.slice(offset, length)).toThrow(expect.objectContaining(outside));
      }
      await expect(client.send(region)).rejects.toMatchObject({ code: 'ERR_ROCE_LIMIT' });
      await expect(client.write(region)).rejects.toMatchObject(outside);
      await expect(client.read(region)).rejects.toMatchObject(outside);

      const foreign = await server.register(8);
      const elsewhere = { code: 'ERR_ROCE_CONFLICT', message: expect.stringMatching(/connection\.register/) };
      for (const memory of [foreign, foreign.slice(0, 4)]) {
        await expect(client.send(memory)).rejects.toMatchObject(elsewhere);
        await expect(client.write(memory)).rejects.toMatchObject(elsewhere);
        await expect(client.read(memory)).rejects.toMatchObject(elsewhere);
      }

      const readOnly = await client.register(8, Access.REMOTE_READ);
      await expect(client.read(readOnly)).rejects.toMatchObject({
        code: 'ERR_ROCE_INVALID_ARGUMENT',
        message: expect.stringMatching(/LOCAL_WRITE/),
      });
      await client.write(readOnly);

      const closed = await client.register(8);
      const slice = closed.slice(0, 4);
      await closed.close();
      for (const memory of [closed, slice]) {
        await expect(client.send(memory)).rejects.toMatchObject({
          code: 'ERR_ROCE_CLOSED',
          message: expect.stringMatching(/region/),
        });
      }
      const packets = client.device.counters().tx_packets;
      for (const nothing of [undefined, null, 8, {}, [1]]) {
        const wrong = { code: 'ERR_ROCE_INVALID_ARGUMENT' };
        await expect(client.send(nothing as never)).rejects.toMatchObject(wrong);
        await expect(client.write(nothing as never)).rejects.toMatchObject(wrong);
      }
      expect(client.device.counters().tx_packets).toBe(packets);
      await client.send(region.slice(0, 64));
      expect((await server.receive()).data.length).toBe(64);
    });

    it('refuses to register once the connection is closed, and closes its regions with it', async () => {
      const { client } = await pair();
      const region = await client.register(8);
      await client.close();
      expect(region.isClosed).toBe(true);
      await expect(client.register(8)).rejects.toMatchObject({ code: 'ERR_ROCE_CLOSED' });
      await expect(client.send(region)).rejects.toMatchObject({ code: 'ERR_ROCE_CLOSED' });
    });
  });
}
