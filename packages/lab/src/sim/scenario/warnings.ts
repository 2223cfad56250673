/** Combinations of options that run, but of which one part of the network ignores what another one relies on. */

import { createRateControl } from 'rocev2/congestion';
import { formatNs, formatRate } from 'rocev2/internal/core';
import { type RateControlOptions, rateControlSettings } from 'rocev2/internal/dcqcn';
import { INT_DATA_DIGEST, INT_DATA_HOPS } from 'rocev2/internal/packet';
import { ackTimeoutNs, recoverySchemes, recoverySettings, senderTraits } from 'rocev2/internal/retransmit';
import { prioritiesOf } from '../../switch/frame-classifier.js';
import type { Topology } from '../topology.js';
import type { Scenario } from './schema.js';

/** Switches mark these priorities unless the scenario names others. */
const MARKED_PRIORITIES = [0, 1, 2, 3, 4, 5];

/** One sentence for each, with what to change; empty for most scenarios. */
export function warningsOf(scenario: Scenario, { hosts, links }: Topology): string[] {
  const { switch: config, nic } = scenario;
  const names = new Set(hosts);
  const hostLinks = links.filter(({ a, b }) => names.has(a) || names.has(b));
  const rates = hostLinks.map(({ rateBps }) => rateBps);
  const [slowest, fastest] = [Math.min(...rates), Math.max(...rates)];
  const controls = new Map(controlsOf(scenario).map((control) => [JSON.stringify(control), control]));
  const warnings = new Set<string>();
  const priority = prioritiesOf(config.classification ?? {})[nic.dscp];
  const isMarked =
    (config.ecn?.priorities ?? MARKED_PRIORITIES).includes(priority) &&
    (config.ecn !== undefined || Object.values(config.portConfig ?? {}).some((port) => port.ecn));
  for (const control of controls.values()) {
    const settings = rateControlSettings(control);
    const { name } = settings;
    if ('linkRateBps' in settings) {
      const { linkRateBps } = settings;
      if (linkRateBps > fastest || linkRateBps < slowest) {
        const range = slowest === fastest ? formatRate(slowest) : `${formatRate(slowest)} to ${formatRate(fastest)}`;
        warnings.add(
          `${name} is set for ${formatRate(linkRateBps)}, but the links of the hosts have ${range}: set its linkRateBps, or use --like`,
        );
      }
    }
    const { usesEcn, intKind } = createRateControl(settings);
    if (usesEcn && !isMarked) {
      warnings.add(
        `${name} reduces rates when packets are marked, but no switch marks priority ${priority}: set switch.ecn`,
      );
    }
    if ((intKind === INT_DATA_HOPS || intKind === INT_DATA_DIGEST) && config.int?.isOn === false) {
      warnings.add(`${name} needs the telemetry of switches, but switch.int.isOn is false`);
    }
  }
  if (config.pfc !== undefined && !config.pfc.priorities.includes(priority)) {
    warnings.add(
      `all data has priority ${priority}, which switch.pfc does not make lossless: name it in switch.pfc.priorities, or set nic.dscp or switch.classification`,
    );
  }
  const { name: recovery } = recoverySettings(nic.recovery);
  if (config.trim === undefined && !senderTraits(recovery).infersLosses) {
    warnings.add(
      `${recovery} retransmits packets that switches trim, but switch.trim is not set: every loss waits for the ACK timeout`,
    );
  }
  if (config.trim !== undefined && recoverySchemes.get(recovery).entropies === undefined) {
    warnings.add('switch.trim trims packets of dcp and multipath only: set nic.recovery');
  }
  const timeoutNs = ackTimeoutNs(nic.timeout);
  // Each way crosses the links of two hosts.
  const roundTripNs = 4 * Math.min(...hostLinks.map(({ delayNs }) => delayNs));
  if (timeoutNs < roundTripNs) {
    warnings.add(
      `the ACK timeout of ${formatNs(timeoutNs)} ends before any answer, which takes ${formatNs(roundTripNs)}: set nic.timeout`,
    );
  }
  return [...warnings];
}

function controlsOf({ nic, flows }: Scenario): RateControlOptions[] {
  const isDefaultUsed = flows.some(({ cc }) => cc === undefined);
  const own = flows.flatMap(({ cc, sinkCc }) => [cc, sinkCc]).filter((options) => options !== undefined);
  return [...(isDefaultUsed ? [nic.cc] : []), ...own];
}
