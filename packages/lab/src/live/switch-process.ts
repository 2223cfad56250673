/** A software switch on loopback as a process of its own. */

import { z } from 'zod';
import { RoceError } from '../core/errors.js';
import { SeededRandom } from '../core/random.js';
import { type LiveSwitch, openLiveSwitch } from '../driver/live-switch.js';
import { FaultPlan } from '../faults/fault-plan.js';
import { type FaultRuleSpec, parseFaultRules } from '../faults/grammar.js';
import { IpAddress } from '../packet/address.js';
import type { SwitchConfig } from '../switch/switch-config.js';
import { method } from './calls.js';
import { serveParent } from './serve-parent.js';

const LOOPBACK = IpAddress.parse('127.0.0.1');

let live: LiveSwitch | undefined;
let faults: FaultPlan | undefined;

function opened(): LiveSwitch {
  if (live === undefined) throw new RoceError('ERR_ROCE_INVALID_STATE', 'the switch is not open');
  return live;
}

/** `none` is an empty list. */
function rulesOf(loss: string): FaultRuleSpec[] {
  return loss === 'none' ? [] : parseFaultRules(loss);
}

const service = {
  /** Opens ports on UDP ports of the system's choice; answers `HOST:PORT` of each, by name. */
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
  /** Other fault rules from the next packet on, in a switch that was opened with some. */
  setLoss: method({ loss: z.string() }, ({ loss }) => {
    if (faults === undefined)
      throw new RoceError('ERR_ROCE_INVALID_STATE', 'the switch was opened without fault rules');
    faults.replaceRules(rulesOf(loss));
  }),
  /** Counters by port. */
  counters: method({}, () => opened().counters),
  /** Bytes waiting at each egress, by port, all priorities together. */
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

/** What the process can be asked. */
export type SwitchService = typeof service;

serveParent(service);
