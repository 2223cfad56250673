/** Which source ports a peer may have, when it spreads its packets over several. */

import { describe, expect, it } from 'vitest';
import { SOURCE_PORT_FLOW, SOURCE_PORT_LEARN } from '../../src/memory/ring/enums.js';
import { CNP, RC_ACK } from '../../src/packet/opcode.js';
import { flowSourcePort } from '../../src/qp/path.js';
import { PeerPort } from '../../src/qp/peer-port.js';

const [QPN, PEER] = [0x123, 0x456];
const FIRST = flowSourcePort(QPN, PEER);
const WAYS = 64;
const port = (way: number) => 0xc000 | ((FIRST + way) & 0x3fff);

describe('a peer with several ways', () => {
  it('may use the ports of its ways, and no other', () => {
    const peer = new PeerPort(SOURCE_PORT_FLOW, QPN, PEER, WAYS);
    for (let way = 0; way < WAYS; way++) expect(peer.accepts(port(way), RC_ACK)).toBe(true);
    for (const stranger of [port(-1), port(WAYS), 4791, 0, 0xbfff]) expect(peer.accepts(stranger, RC_ACK)).toBe(false);
  });

  it('may use one port if there is one way', () => {
    const peer = new PeerPort(SOURCE_PORT_FLOW, QPN, PEER, 1);
    expect([0, 1].map((way) => peer.accepts(port(way), RC_ACK))).toEqual([true, false]);
  });

  it('is known by all its ports once one of them was learned', () => {
    const peer = new PeerPort(SOURCE_PORT_LEARN, QPN, PEER, WAYS);
    peer.learn(port(7));
    expect(peer.isSettled).toBe(true);
    expect([port(0), port(63), port(64), 4791].map((from) => peer.accepts(from, RC_ACK))).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });

  it('is known by one port if it turns out to have a socket', () => {
    const peer = new PeerPort(SOURCE_PORT_LEARN, QPN, PEER, WAYS);
    peer.learn(4791);
    expect([4791, port(0), port(7)].map((from) => peer.accepts(from, RC_ACK))).toEqual([true, false, false]);
  });

  it('has one port if that was told, whatever number it has', () => {
    const peer = new PeerPort(FIRST, QPN, PEER, WAYS);
    expect([port(0), port(1)].map((from) => peer.accepts(from, CNP))).toEqual([true, false]);
  });
});
