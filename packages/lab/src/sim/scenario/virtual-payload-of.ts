import { createRateControl, type RateControlOptions, rateControlSettings } from 'rocev2/congestion';
import { RoceError } from 'rocev2/internal/core';
import { parseFaultRules } from 'rocev2/internal/faults';
import { createSender, recoverySettings } from 'rocev2/internal/retransmit';
import type { Scenario, Workload } from './schema.js';

interface Watchers {
  readonly observer?: unknown;
  readonly station?: unknown;
}

const HINT = 'leave payload out, or set it to real: the run has the same packets';

export function virtualPayloadOf(scenario: Scenario, watchers: Watchers): { hasTrailers: boolean } | undefined {
  if (scenario.payload === 'real') return undefined;
  if (watchers.observer !== undefined || watchers.station !== undefined) {
    throw new RoceError(
      'ERR_ROCE_CONFLICT',
      'payload virtual: there are no bytes and no ICRC to capture or trace',
      HINT,
    );
  }
  const rules = scenario.faults === undefined ? [] : parseFaultRules(scenario.faults);
  if (rules.some(({ actions }) => actions.some(({ action }) => action.changesBytes))) {
    throw new RoceError(
      'ERR_ROCE_CONFLICT',
      'payload virtual: a fault rule changes bytes of packets, and they have none',
      HINT,
    );
  }
  const controls = [scenario.nic.cc, ...scenario.flows.flatMap(controlsOf)];
  return { hasTrailers: controls.some(hasTrailer) || createSender(recoverySettings(scenario.nic.recovery)).wantsEcho };
}

function hasTrailer(options: RateControlOptions): boolean {
  return createRateControl(rateControlSettings(options)).intKind > 0;
}

function controlsOf(workload: Workload) {
  return [workload.cc, workload.sinkCc].filter((options) => options !== undefined);
}
