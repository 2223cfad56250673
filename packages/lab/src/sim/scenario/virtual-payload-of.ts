import { createRateControl, type RateControlOptions, rateControlSettings } from 'rocev2/congestion';
import { RoceError } from 'rocev2/internal/core';
import { parseFaultRules } from 'rocev2/internal/faults';
import { createSender, recoverySettings, STANDARD_RECOVERY } from 'rocev2/internal/retransmit';
import type { Scenario, Workload } from './schema.js';

interface Watchers {
  readonly observer?: unknown;
  readonly station?: unknown;
}

const HINT = 'leave payload out, or set it to real: the run has the same packets';

/**
 * How packets go without payload; undefined: they have one. Unless the scenario decides, they have none where nobody
 * looks at it. Throws ERR_ROCE_CONFLICT where it is needed and the scenario refuses it.
 */
export function virtualPayloadOf(
  scenario: Scenario,
  watchers: Watchers,
): { hasTrailers: boolean; comparesPackets: boolean } | undefined {
  if (scenario.payload === 'real') return undefined;
  const need = needOf(scenario, watchers);
  if (need !== undefined) {
    if (scenario.payload === undefined) return undefined;
    throw new RoceError('ERR_ROCE_CONFLICT', `payload virtual: ${need}`, HINT);
  }
  const controls = [scenario.nic.cc, ...scenario.flows.flatMap(controlsOf)];
  const recovery = recoverySettings(scenario.nic.recovery);
  return {
    hasTrailers: controls.some(hasTrailer) || createSender(recovery).wantsEcho,
    // Receivers of other schemes may keep packets after a gap.
    comparesPackets: recovery.name !== STANDARD_RECOVERY,
  };
}

function needOf({ faults }: Scenario, { observer, station }: Watchers): string | undefined {
  if (observer !== undefined || station !== undefined) return 'there are no bytes and no ICRC to capture or trace';
  const rules = faults === undefined ? [] : parseFaultRules(faults);
  return rules.some(({ actions }) => actions.some(({ action }) => action.changesBytes))
    ? 'a fault rule changes bytes of packets, and they have none'
    : undefined;
}

function hasTrailer(options: RateControlOptions): boolean {
  return createRateControl(rateControlSettings(options)).intKind > 0;
}

function controlsOf(workload: Workload) {
  return [workload.cc, workload.sinkCc].filter((options) => options !== undefined);
}
