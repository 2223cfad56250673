import { method, serveParent } from '@rocev2/command';
import { RoceError, SeededRandom } from 'rocev2/internal/core';
import { FaultPlan, type FaultRuleSpec, parseFaultRules } from 'rocev2/internal/faults';
import { IpAddress } from 'rocev2/internal/packet';
import { z } from 'zod';
import type { SwitchConfig } from '../switch/switch-config.js';
import { type LiveSwitch, openLiveSwitch } from './live-switch.js';

const LOOPBACK = IpAddress.parse('127.0.0.1');

let live: LiveSwitch | undefined;
let faults: FaultPlan | undefined;

function opened(): LiveSwitch {
  if (live === undefined) throw new RoceError('ERR_ROCE_INVALID_STATE', 'the switch is not open');
  return live;
}

function rulesOf(loss: string): FaultRuleSpec[] {
  return loss === 'none' ? [] : parseFaultRules(loss);
}

const service = {
  open: method(
    {
      ports: z.array(z.string()),
      loss: z.string().optional(),
      seed: z.number().int(),
      config: z.custom<SwitchConfig>().optional(),
    },
    async ({ ports, loss, seed, config }) => {
      const random = new SeededRandom(seed);
      faults = loss === undefined ? undefined : new FaultPlan(rulesOf(loss), random);
      const opening = await openLiveSwitch({
        ...config,
        random: random.stream('switch'),
        ports: ports.map((name) => ({ name, local: { host: LOOPBACK, port: 0 } })),
        ...(faults !== undefined && { faults }),
      });
      live = opening;
      return Object.fromEntries(ports.map((name) => [name, `${LOOPBACK.text}:${opening.local(name).port}`]));
    },
  ),
  setLoss: method({ loss: z.string() }, ({ loss }) => {
    if (faults === undefined)
      throw new RoceError('ERR_ROCE_INVALID_STATE', 'the switch was opened without fault rules');
    faults.replaceRules(rulesOf(loss));
  }),
  counters: method({}, () => opened().counters),
  queues: method({}, () =>
    Object.fromEntries(
      Object.entries(opened().snapshot().ports).map(([name, { egress }]) => [
        name,
        egress.reduce((sum, { bytes }) => sum + bytes, 0),
      ]),
    ),
  ),
  close: method({}, async () => {
    await live?.close();
    live = undefined;
  }),
};

export type SwitchService = typeof service;

serveParent(service);
