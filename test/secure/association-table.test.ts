/** Which of several associations with a peer seals what goes there. */

import { expect, it } from 'vitest';
import { chooseCipher } from '../../src/driver/cipher/cipher-choice.js';
import { IpAddress } from '../../src/packet/address.js';
import { Association } from '../../src/port/secure/association.js';
import { AssociationTable } from '../../src/port/secure/association-table.js';
import { createPair } from '../support/pair.js';
import { associate, termsBetween } from '../support/protected-host.js';

const PEER = IpAddress.parse('192.0.2.2');

function tableOf(count: number) {
  const table = new AssociationTable();
  const associations = Array.from({ length: count }, (_, salt) => {
    const [terms] = termsBetween('192.0.2.1', PEER.text, salt);
    const association = new Association(terms, PEER, chooseCipher('node:crypto').make, 0);
    table.add(association);
    return association;
  });
  return { table, associations };
}

it('the newest that has started, of those that last, or else of those that end', () => {
  const { table, associations } = tableOf(3);
  const [first, second, third] = associations;
  expect(table.towards(PEER, 4791)).toBeUndefined();
  first.isStarted = true;
  second.isStarted = true;
  expect(table.towards(PEER, 4791)).toBe(second);
  second.isRetired = true;
  expect(table.towards(PEER, 4791)).toBe(first);
  third.isStarted = true;
  expect(table.towards(PEER, 4791)).toBe(third);
  for (const association of associations) association.isRetired = true;
  expect(table.towards(PEER, 4791)).toBe(third);
  expect(table.towards(PEER, 4792)).toBeUndefined();
});

it('one of two connections ends: what the peer has forgotten is not used any more', async () => {
  const pair = await createPair({ secure: {} });
  const { a, b, ports } = pair;
  const [ofA, ofB] = ports!;
  await associate(ofA, ofB, 1);
  const newest = [...ofA.associations].at(-1)!;
  const write = () => {
    a.qp.postSend({ opcode: 'RDMA_WRITE', sges: [a.mr.sge(0, 64)], remoteAddr: b.mr.addr, rkey: b.mr.rkey });
    return pair.completions(a.cq, 1)[0].statusName;
  };
  expect(write()).toBe('SUCCESS');
  expect(newest.counters.sealed).toBeGreaterThan(0);
  ofA.retire(newest.terms.spi);
  ofB.retire(newest.terms.remoteSpi);
  const { sealed } = newest.counters;
  expect(write()).toBe('SUCCESS');
  expect(newest.counters.sealed).toBe(sealed);
  // b forgets a moment before a does.
  ofB.dissolve(newest.terms.remoteSpi);
  expect(write()).toBe('SUCCESS');
  expect(b.device.counters().secure_drop_unknown_spi).toBe(0);
  expect(a.device.counters().local_ack_timeout_err).toBe(0);
});
