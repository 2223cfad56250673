/** Simulation, models, Switch and Audit, with each parameter replaced by what it cannot be. */

import { expect, it } from 'vitest';
import { SeededRandom } from '../../../../src/core/random.js';
import { CaptureStream } from '../../../../src/port/capture/capture-stream.js';
import { bound, type Call, type Case, wronglyTaken } from '../../../../test/support/wrong-arguments.js';
import { Audit } from '../../../inspect/src/index.js';
import * as fluid from '../../src/fluid/index.js';
import * as sim from '../../src/sim/index.js';
import { Simulation } from '../../src/sim/simulation.js';
import * as topologies from '../../src/sim/topology.js';
import { FaultPlan, headroomBytes } from '../../src/switch/index.js';
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

const random = new SeededRandom(1).stream('sizes');
const scenario = {
  topology: { kind: 'pair', rate: '10Gb/s', delay: '1us' },
  flows: [{ from: 'h0', to: 'h1', bytes: 1000 }],
};
const headroom = {
  rateBps: 1e10,
  cableMetres: 5,
  portMtuBytes: 1518,
  losslessMtuBytes: 1518,
  cellBytes: 144,
  smallPacketPercent: 100,
};

function fluidCases(): Case[] {
  const { DCQCN_SIGCOMM15: dcqcn, TIMELY_SIGCOMM15: timely, PATCHED_TIMELY_CONEXT16: patched } = fluid;
  const groups = [{ count: 2, startNs: 0, initialRateBps: 1e9 }];
  const jitter = { maxNs: 1000, periodNs: 1000, random };
  const model = { groups, delayNs: 4000, stepNs: 1000, jitter };
  const loop = fluid.exactDcqcnLoop(dcqcn, 2, 4e-6);
  const gains = fluid.publishedHostPi(patched);
  const pi = { gains, scope: 'shared' };
  const study = { groups, delayNs: 4000, jitter: () => jitter };
  const packets = { additiveIncrease: 1, alphaInterval: 1, capacity: 1, byteCounter: 1, rateTimer: 1 };
  const law = new fluid.OriginalTimelyLaw(timely);
  const newModel = () => new fluid.DcqcnModel({ parameters: dcqcn, groups, delayNs: 4000 });
  return [
    { name: 'dcqcnConvergence', call: fluid.dcqcnConvergence as Call, args: [dcqcn, 2] },
    { name: 'dcqcnFixedPoint', call: fluid.dcqcnFixedPoint as Call, args: [dcqcn, 2] },
    { name: 'approximateMarkProbability', call: fluid.approximateMarkProbability as Call, args: [packets, 2] },
    { name: 'authorsDcqcnLoop', call: fluid.authorsDcqcnLoop as Call, args: [dcqcn, 2, 4e-6] },
    { name: 'exactDcqcnLoop', call: fluid.exactDcqcnLoop as Call, args: [dcqcn, 2, 4e-6, fluid.DCQCN_PI] },
    { name: 'togetherAtStart', call: fluid.togetherAtStart, args: [2] },
    { name: 'flowCount', call: fluid.flowCount as Call, args: [groups] },
    { name: 'hasSettled', call: fluid.hasSettled, args: [{ mean: 1, min: 1, max: 1 }] },
    {
      name: 'simulate a model',
      call: (options: never) => fluid.simulate(newModel(), options),
      args: [{ durationNs: 1e5, observeNs: 1e4, traceSamples: 10 }],
    },
    { name: 'simulate what is no model', call: fluid.simulate as Call, args: [newModel(), { durationNs: 1e5 }] },
    { name: 'patchedTimelyFixedPoint', call: fluid.patchedTimelyFixedPoint as Call, args: [patched, 2] },
    {
      name: 'patchedTimelyConvergenceBoundNs',
      call: fluid.patchedTimelyConvergenceBoundNs as Call,
      args: [patched, 2],
    },
    { name: 'patchedTimelyLoop', call: fluid.patchedTimelyLoop as Call, args: [patched, 2, 4e-6] },
    { name: 'phaseMargin', call: fluid.phaseMargin as Call, args: [{ ...loop }] },
    { name: 'criticalDelayNs', call: fluid.criticalDelayNs as Call, args: [() => loop, 1000] },
    { name: 'publishedHostPi', call: fluid.publishedHostPi as Call, args: [timely] },
    {
      name: 'dcqcnStudy',
      call: fluid.dcqcnStudy as Call,
      args: [{ parameters: dcqcn, ...study, pi: fluid.DCQCN_PI, marking: 'egress' }],
    },
    { name: 'timelyStudy', call: fluid.timelyStudy as Call, args: [{ parameters: timely, ...study }] },
    {
      name: 'patchedTimelyStudy',
      call: fluid.patchedTimelyStudy as Call,
      args: [{ parameters: patched, ...study, pi }],
    },
    {
      name: 'DcqcnModel',
      call: made(fluid.DcqcnModel),
      args: [{ parameters: dcqcn, ...model, pi: fluid.DCQCN_PI, marking: 'egress' }],
    },
    { name: 'TimelyModel', call: made(fluid.TimelyModel), args: [{ parameters: timely, law, ...model }] },
    { name: 'OriginalTimelyLaw', call: made(fluid.OriginalTimelyLaw), args: [timely] },
    { name: 'PatchedTimelyLaw', call: made(fluid.PatchedTimelyLaw), args: [patched] },
    {
      name: 'HostPiLaw',
      call: (...args: never[]) => new fluid.HostPiLaw(...(args as unknown as [never, never, never, never])),
      args: [timely, gains, 'shared', 2],
    },
  ];
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
  { name: 'mean', call: sim.mean, args: [[1, 2]] },
  { name: 'quantile', call: sim.quantile, args: [[1, 2], 0.5] },
  { name: 'jainIndex', call: sim.jainIndex, args: [[1, 2]] },
  { name: 'meanBytes', call: sim.meanBytes, args: [sim.WEB_SEARCH] },
  { name: 'drawBytes', call: sim.drawBytes, args: [sim.WEB_SEARCH, random] },
  { name: 'parseNs3Topology', call: sim.parseNs3Topology, args: ['2 0 1\n\n0 1 1Gbps 1us 0\n'] },
  { name: 'parseNs3Flows', call: sim.parseNs3Flows, args: ['1\n0 1 3 100 1000 2\n', 'hpcc', 1000] },
  { name: 'like', call: sim.like as Call, args: [scenario, 'mlx5'] },
  { name: 'override', call: sim.override as Call, args: [scenario, ['nic.mtu=1024']] },
  {
    name: 'simulate',
    call: sim.simulate as Call,
    args: [scenario, { onProgress: () => true, onControl: () => {}, realNowNs: () => 0 }],
  },
  { name: 'SeededRandom', call: made(SeededRandom), args: [1] },
  { name: 'SeededRandom.stream', call: bound(new SeededRandom(1), 'stream'), args: ['a'] },
  { name: 'FaultPlan.parse', call: FaultPlan.parse as Call, args: ['drop,nth=1', new SeededRandom(1), ['a']] },
  { name: 'headroomBytes', call: headroomBytes as Call, args: [headroom] },
  { name: 'CaptureStream.open', call: CaptureStream.open as Call, args: ['/nonexistent'] },
  { name: 'CaptureStream.of', call: CaptureStream.of as Call, args: [new Blob([])] },
  ...fluidCases(),
  {
    name: 'Audit',
    call: made(Audit),
    args: [{ rules: [7], udpPorts: [4791], capturedAt: '192.0.2.1', fitsRates: false }],
  },
];

it('arguments that cannot be are refused with a RoceError', async () => {
  expect(await wronglyTaken(cases)).toEqual([]);
}, 600_000);
