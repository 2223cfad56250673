/** Simulation, Switch and Audit, with each parameter replaced by what it cannot be. */

import { expect, it } from 'vitest';
import { bound, type Call, type Case, wronglyTaken } from '../../../../test/support/wrong-arguments.js';
import { Audit } from '../../../inspect/src/index.js';
import { Simulation } from '../../src/sim/simulation.js';
import * as topologies from '../../src/sim/topology.js';
import { Switch } from '../../src/switch/switch.js';

const link = { rateBps: 10e9, delayNs: 1000 };
const topology = topologies.star(3, link);
const limits = { untilNs: 1000, eventsMax: 10 };
const config = {
  queuePackets: 100,
  frameBytesMax: 9234,
  hashSeed: 1,
  macTableEntries: 16,
  macAgeNs: 1e9,
  flood: true,
  portDefaults: { rateBps: 10e9 },
  ecn: { kind: 'red', kminBytes: 1000, kmaxBytes: 2000, pmax: 0.5, at: 'dequeue', priorities: [3], dropNotEct: false },
  buffer: { totalBytes: 1e6, losslessAlpha: 1, lossyAlpha: 8, reservedBytes: 4096, xonOffsetBytes: 3072 },
  pfc: { priorities: [3], quanta: 65_535, watchdog: { detectNs: 1e9, restoreNs: 1e9, pollNs: 1e9, action: 'drop' } },
  classification: { trust: 'dscp', dscpToPriority: { 0: 3 } },
  scheduling: { strict: [6], weights: [1, 1, 1, 1, 1, 1, 1, 1] },
};

function made<O extends object>(construct: new (options: never) => O): Call {
  return (options: unknown) => new construct(options as never);
}

const simulation = new Simulation({ topology });
const cases: readonly Case[] = [
  { name: 'star', call: topologies.star as Call, args: [3, link] },
  { name: 'pair', call: topologies.pair as Call, args: [link] },
  { name: 'dumbbell', call: topologies.dumbbell as Call, args: [4, link, link] },
  { name: 'fatTree', call: topologies.fatTree as Call, args: [4, link, link] },
  { name: 'parkingLot', call: topologies.parkingLot as Call, args: [3, 2, link, link] },
  { name: 'region', call: topologies.region as Call, args: [4, link, link] },
  { name: 'leafSpine', call: topologies.leafSpine as Call, args: [2, 2, 2, link, link] },
  { name: 'Simulation', call: made(Simulation), args: [{ topology, seed: 1, pathMtu: 1024, faults: 'drop,nth=1' }] },
  { name: 'Simulation of a switch', call: made(Simulation), args: [{ topology, switchConfig: { queuePackets: 100 } }] },
  { name: 'Simulation.device', call: bound(simulation, 'device'), args: ['h0'] },
  { name: 'Simulation.address', call: bound(simulation, 'address'), args: ['h0'] },
  { name: 'Simulation.onActivity', call: bound(simulation, 'onActivity'), args: ['h0', () => {}] },
  { name: 'Simulation.at', call: bound(simulation, 'at'), args: [1000, () => {}] },
  { name: 'Simulation.run', call: bound(simulation, 'run'), args: [{ ...limits, done: () => true }] },
  { name: 'Simulation.until', call: bound(simulation, 'until'), args: [Promise.resolve(), 10] },
  { name: 'Simulation.sleep', call: bound(simulation, 'sleep'), args: [1000] },
  { name: 'Simulation.observe', call: bound(simulation, 'observe'), args: ['h0', () => {}] },
  { name: 'Simulation.queuedBytes', call: bound(simulation, 'queuedBytes'), args: ['s0', 'h0'] },
  { name: 'Simulation.counters', call: bound(simulation, 'counters'), args: ['s0'] },
  { name: 'Simulation.fail', call: bound(simulation, 'fail'), args: ['h0-s0', 10] },
  { name: 'Simulation.repair', call: bound(simulation, 'repair'), args: ['h0-s0', 10] },
  { name: 'Switch', call: made(Switch), args: [{ ports: ['a', 'b'], ...config }] },
  {
    name: 'Audit',
    call: made(Audit),
    args: [{ rules: [7], udpPorts: [4791], capturedAt: '192.0.2.1', fitsRates: false }],
  },
];

it('arguments that cannot be are refused with a RoceError', async () => {
  expect(await wronglyTaken(cases)).toEqual([]);
}, 600_000);
