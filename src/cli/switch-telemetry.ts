/** The telemetry document of a switch, which its control socket serves. */

import { formatUdpEndpoint } from '../dgram-ext/udp-endpoint.js';
import type { LiveSwitch, LiveSwitchOptions } from '../driver/live-switch.js';
import { wallMs } from '../driver/system-clock.js';
import type { SwitchDocument } from '../estats/switch-document.js';
import type { FaultPlan } from '../faults/fault-plan.js';
import type { EgressQueueUse } from '../switch/switch-snapshot.js';

/** The document at this moment. */
export function switchDocument(
  live: LiveSwitch,
  { ports, portConfig, portDefaults }: LiveSwitchOptions,
  faults: FaultPlan | undefined,
  uptimeSeconds: number,
): SwitchDocument {
  const snapshot = live.snapshot();
  return {
    kind: 'switch',
    version: 1,
    pid: process.pid,
    address: [...new Set(ports.map(({ local }) => local.host.text))].join(','),
    time: new Date(wallMs()).toISOString(),
    uptimeSeconds,
    ports: ports.map(({ name }) => {
      const { egress } = snapshot.ports[name];
      return {
        name,
        local: formatUdpEndpoint(live.local(name)),
        rateBps: portConfig?.[name]?.rateBps ?? portDefaults?.rateBps ?? null,
        counters: { ...live.counters[name] },
        queueBytes: egress.reduce((sum, { bytes }) => sum + bytes, 0),
        queueBytesMax: Math.max(...egress.map(({ bytesMax }) => bytesMax)),
        pausedPriorities: prioritiesThat(egress, ({ isPaused }) => isPaused),
        stormPriorities: prioritiesThat(egress, ({ isInStorm }) => isInStorm),
      };
    }),
    rules: [...(faults?.hits ?? [])],
  };
}

function prioritiesThat(egress: readonly EgressQueueUse[], holds: (queue: EgressQueueUse) => boolean): number[] {
  return egress.flatMap((queue, priority) => (holds(queue) ? [priority] : []));
}
