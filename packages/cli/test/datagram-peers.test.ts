import { describe, expect, it } from 'vitest';
import { IpAddress } from '../../../src/packet/address.js';
import { DatagramPeers } from '../src/rdma-cm/datagram-peers.js';

const CLIENT = IpAddress.parse('192.0.2.2');
const STRANGER = IpAddress.parse('192.0.2.3');

function from(source: IpAddress, qpn: number) {
  return { source, qpn };
}

describe('the clients of a datagram server', () => {
  it('are complete when each has sent all', () => {
    const peers = new DatagramPeers(2, 2);
    peers.admit(CLIENT);
    peers.admit(CLIENT);
    for (const qpn of [5, 6, 5]) peers.count(from(CLIENT, qpn));
    expect([peers.received, peers.isComplete]).toEqual([3, false]);
    peers.count(from(CLIENT, 6));
    expect([peers.received, peers.isComplete]).toEqual([4, true]);
    expect(peers.complete().map(({ qpn }) => qpn)).toEqual([5, 6]);
    expect(peers.firstAddress).toBe(CLIENT);
  });

  it('are those who have asked: nobody else counts, and nobody as more queue pairs than he has asked for', () => {
    const peers = new DatagramPeers(2, 1);
    peers.count(from(STRANGER, 5));
    peers.admit(CLIENT);
    for (const qpn of [5, 6, 7]) peers.count(from(CLIENT, qpn));
    expect([peers.received, peers.isComplete]).toEqual([1, false]);
    peers.admit(STRANGER);
    peers.count(from(STRANGER, 5));
    expect([peers.received, peers.isComplete]).toEqual([2, true]);
  });

  it('who only ask do not complete it, unless asking is all', () => {
    const [exchanges, asks] = [new DatagramPeers(1, 1), new DatagramPeers(1, 0)];
    for (const peers of [exchanges, asks]) peers.admit(CLIENT);
    expect([exchanges.isComplete, asks.isComplete]).toEqual([false, true]);
    expect(asks.firstAddress).toBe(CLIENT);
  });

  it('send no more than they should: what comes after the last is not another client', () => {
    const peers = new DatagramPeers(2, 1);
    peers.admit(CLIENT);
    peers.count(from(CLIENT, 5));
    peers.count(from(CLIENT, 5));
    expect([peers.received, peers.isComplete]).toEqual([1, false]);
  });

  it('are remembered up to a number of addresses, the first asked forgotten first', () => {
    const peers = new DatagramPeers(1, 1);
    peers.admit(CLIENT);
    for (let i = 0; i < 4096; i++) peers.admit(IpAddress.parse(`10.0.${i >> 8}.${i & 255}`));
    peers.count(from(CLIENT, 5));
    expect(peers.isComplete).toBe(false);
    peers.count(from(IpAddress.parse('10.0.15.255'), 5));
    expect(peers.isComplete).toBe(true);
  });
});
