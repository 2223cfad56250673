/** Packets of one message are accessed together, and nothing is kept for the next callback of the event loop. */

import { describe, expect, it } from 'vitest';
import type { AddressSpace } from '../src/address-space.js';
import { BatchedMemory } from '../src/batched-memory.js';

const PACKET = 1000;
const PACKETS = 4;
const MESSAGE = PACKET * PACKETS;

/** A program with memory from address 0 on, of which the bytes from `there` on cannot be accessed. */
class Space implements AddressSpace {
  readonly bytes = Uint8Array.from({ length: 3 * MESSAGE }, (_, i) => i % 251);
  there = this.bytes.length;
  calls = 0;

  read(address: number, length: number, to: Uint8Array, toOffset: number): boolean {
    this.calls++;
    if (address + length > this.there) return false;
    to.set(this.bytes.subarray(address, address + length), toOffset);
    return true;
  }

  write(address: number, from: Uint8Array, fromOffset: number, length: number): boolean {
    this.calls++;
    if (address + length > this.there) return false;
    this.bytes.set(from.subarray(fromOffset, fromOffset + length), address);
    return true;
  }

  close(): void {}
}

function rig() {
  const space = new Space();
  const memory = new BatchedMemory(space);
  const region = { valid: true };
  const to = new Uint8Array(MESSAGE);
  const read = (packet: number, start = 0) => {
    const follows = MESSAGE - (packet + 1) * PACKET;
    return memory.read(start + packet * PACKET, PACKET, to, packet * PACKET, follows);
  };
  const data = new Uint8Array(MESSAGE).fill(7);
  const write = (packet: number, start = 0) => {
    const follows = MESSAGE - (packet + 1) * PACKET;
    return memory.write(start + packet * PACKET, data, packet * PACKET, PACKET, follows, region);
  };
  return { space, memory, region, to, read, write };
}

const packets = Array.from({ length: PACKETS }, (_, i) => i);
const endOfCallback = () => Promise.resolve();

describe('reading', () => {
  it('takes one call for a message', () => {
    const { space, to, read } = rig();
    expect(packets.map((packet) => read(packet))).toEqual([true, true, true, true]);
    expect(to).toEqual(space.bytes.subarray(0, MESSAGE));
    expect(space.calls).toBe(1);
  });

  it('finds what the program has written since the last callback', async () => {
    const { space, to, read } = rig();
    read(0);
    await endOfCallback();
    space.bytes.fill(9);
    read(1);
    expect(to.subarray(PACKET, 2 * PACKET).every((byte) => byte === 9)).toBe(true);
  });

  it('finds what the program has written into a buffer that was sent whole and is sent again', () => {
    const { space, to, read } = rig();
    for (const packet of packets) read(packet);
    space.bytes.fill(9);
    for (const packet of packets) read(packet);
    expect(to.every((byte) => byte === 9)).toBe(true);
  });

  it('fails at the packet that cannot be read', () => {
    const { space, read } = rig();
    space.there = 2.5 * PACKET;
    expect(packets.map((packet) => read(packet))).toEqual([true, true, false, false]);
  });

  it('reads less ahead while it is not used', async () => {
    const { space, memory, to } = rig();
    for (let i = 0; i < 4; i++) {
      memory.read(0, PACKET, to, 0, MESSAGE + PACKET);
      await endOfCallback();
    }
    space.calls = 0;
    for (let i = 0; i < 6; i++) memory.read(i * PACKET, PACKET, to, 0, (5 - i) * PACKET);
    expect(space.calls).toBe(2);
  });
});

describe('writing', () => {
  it('takes one call for a message, which is there with its last packet', () => {
    const { space, write } = rig();
    for (const packet of packets) expect(write(packet)).toBe(true);
    expect(space.calls).toBe(1);
    expect(space.bytes.subarray(0, MESSAGE).every((byte) => byte === 7)).toBe(true);
    expect(space.bytes[MESSAGE]).toBe(MESSAGE % 251);
  });

  it('ends with the callback, also without the last packet', async () => {
    const { space, write } = rig();
    write(0);
    await endOfCallback();
    expect(space.bytes[0]).toBe(7);
  });

  it('of packets that do not continue each other is complete', () => {
    const { space, write } = rig();
    for (const packet of [0, 2, 1, 3]) write(packet);
    for (const packet of packets) write(packet, MESSAGE);
    expect(space.bytes.subarray(0, 2 * MESSAGE).every((byte) => byte === 7)).toBe(true);
  });

  it('comes before a read', () => {
    const { to, read, write } = rig();
    write(0);
    read(0);
    expect(to[0]).toBe(7);
  });

  it('that fails makes the region invalid: at the last packet, and at the end of the callback', async () => {
    const { space, region, write } = rig();
    space.there = 2.5 * PACKET;
    expect(packets.map((packet) => write(packet))).toEqual([true, true, true, false]);
    expect(region.valid).toBe(false);
    region.valid = true;
    write(2);
    expect(region.valid).toBe(true);
    await endOfCallback();
    expect(region.valid).toBe(false);
  });
});
