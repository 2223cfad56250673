/** What a scenario does to its network while it runs. */

import { RoceError } from '../../core/errors.js';
import type { EventQueue } from '../event-queue.js';
import type { Network } from '../network.js';
import type { Scenario } from './schema.js';

type Happening = Scenario['happenings'][number];

/** Throws ERR_ROCE_UNKNOWN_NAME for switches, ports and hosts that do not exist. */
export function schedule(scenario: Scenario, network: Network, events: EventQueue): void {
  for (const [i, happening] of scenario.happenings.entries()) {
    events.at(happening.at, actionOf(happening, network, `happenings[${i}]`));
  }
}

function actionOf(happening: Happening, network: Network, field: string): () => void {
  if (happening.do === 'storm') {
    const { host, priority, until } = happening;
    const station = network.stations.get(host);
    if (station === undefined) throw new RoceError('ERR_ROCE_UNKNOWN_NAME', `${field}: there is no host ${host}`);
    return () => station.storm(priority, until ?? Number.POSITIVE_INFINITY);
  }
  const node = network.switches.get(happening.switch);
  const port = node?.ports.indexOf(happening.port) ?? -1;
  if (node === undefined || port < 0) {
    const names = [...network.switches].flatMap(([name, { ports }]) => ports.map((to) => `${name}>${to}`));
    throw new RoceError(
      'ERR_ROCE_UNKNOWN_NAME',
      `${field}: there is no port ${happening.switch}>${happening.port}`,
      `there are ${names.join(', ')}`,
    );
  }
  const { priority } = happening;
  return happening.do === 'block' ? () => node.block(port, priority) : () => node.unblock(port, priority);
}
