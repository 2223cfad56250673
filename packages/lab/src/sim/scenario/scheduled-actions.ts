import { RoceError } from 'rocev2/internal/core';
import type { EventQueue } from '../event-queue.js';
import type { LogicalProcess } from '../logical-process.js';
import type { Network } from '../network.js';
import type { Scenario } from './schema.js';

type Happening = Scenario['happenings'][number];
type Outage = Extract<Happening, { do: 'fail' | 'repair' }>;
type ScheduledAction = Exclude<Happening, Outage>;

/** What is done to a node happens in the part of the network that has it, what is done to links in all. */
export function schedule(
  scenario: Scenario,
  network: Network,
  events: EventQueue,
  logicalProcess: LogicalProcess,
): void {
  for (const [i, action] of scenario.happenings.entries()) {
    const field = `happenings[${i}]`;
    if (action.do === 'fail' || action.do === 'repair') {
      scheduleOutage(action, network, events, field);
      continue;
    }
    const act = actionOf(action, network, field);
    if (logicalProcess.owns(action.do === 'storm' ? action.host : action.switch)) events.at(action.at, act);
  }
}

/** Links change at once; switches learn of it `reroute` later. */
function scheduleOutage({ at, what, reroute, ...action }: Outage, network: Network, events: EventQueue, field: string) {
  const links = inField(field, () => network.linksNamed(what));
  events.at(at, () => network.setLinks(links, action.do === 'repair'));
  events.at(at + reroute, () => network.reroute());
}

function inField<T>(field: string, find: () => T): T {
  try {
    return find();
  } catch (cause) {
    if (!(cause instanceof RoceError)) throw cause;
    throw new RoceError(cause.code, `${field}: ${cause.message}`, undefined, { cause });
  }
}

function actionOf(action: ScheduledAction, network: Network, field: string): () => void {
  if (action.do === 'storm') {
    const { host, priority, until } = action;
    const station = network.stations.get(host);
    if (station === undefined) throw new RoceError('ERR_ROCE_UNKNOWN_NAME', `${field}: there is no host ${host}`);
    return () => station.storm(priority, until ?? Number.POSITIVE_INFINITY);
  }
  const node = network.switches.get(action.switch);
  const port = node?.ports.indexOf(action.port) ?? -1;
  if (node === undefined || port < 0) {
    const names = [...network.switches].flatMap(([name, { ports }]) => ports.map((to) => `${name}>${to}`));
    throw new RoceError(
      'ERR_ROCE_UNKNOWN_NAME',
      `${field}: there is no port ${action.switch}>${action.port}`,
      `there are ${names.join(', ')}`,
    );
  }
  const { priority } = action;
  return action.do === 'block' ? () => node.block(port, priority) : () => node.unblock(port, priority);
}
