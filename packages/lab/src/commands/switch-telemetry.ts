import type { SwitchDocument } from '@rocev2/command';
import { wallMs } from 'rocev2/internal/driver';
import type { FaultPlan } from 'rocev2/internal/faults';
import type { LiveSwitchPortCounters } from '../live/linked-switch.js';
import type { EgressQueueUse, SwitchSnapshot } from '../switch/switch-snapshot.js';

interface RunningSwitch {
  readonly counters: Readonly<Record<string, LiveSwitchPortCounters>>;
  snapshot(): SwitchSnapshot;
}

interface SwitchDescription {
  readonly address: string;
  readonly ports: ReadonlyArray<Pick<SwitchDocument['ports'][number], 'name' | 'local' | 'rateBps'>>;
  readonly faults: FaultPlan | undefined;
}

export function switchDocument(
  live: RunningSwitch,
  { address, ports, faults }: SwitchDescription,
  uptimeSeconds: number,
): SwitchDocument {
  const snapshot = live.snapshot();
  const { counters } = live;
  return {
    kind: 'switch',
    version: 1,
    pid: process.pid,
    address,
    time: new Date(wallMs()).toISOString(),
    uptimeSeconds,
    ports: ports.map((port) => {
      const { egress } = snapshot.ports[port.name];
      return {
        ...port,
        counters: { ...counters[port.name] },
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
