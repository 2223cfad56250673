import type { SwitchDocument } from '@rocev2/command';
import { pauseFrames } from '@rocev2/lab/internal';
import type { AttachedPort, SwitchDetail } from '../messages/attached.js';
import { counted, firstTrouble, type ProgramKind } from './program-kind.js';
import { type Change, growth, sum, type TimedChange } from './rates.js';

type Port = SwitchDocument['ports'][number];
type Counter = (port: Port) => number;

const counter =
  (name: string): Counter =>
  ({ counters }) =>
    counters[name] ?? 0;
const pauses =
  (direction: 'rx' | 'tx'): Counter =>
  ({ counters }) =>
    pauseFrames(counters, direction);
const dropped: Counter = (port) => sum(dropsOf(port).map(({ count }) => count));
const marked = counter('tx_ecn_marked');
const storms = counter('pfcwd_storms');

export const SWITCH: ProgramKind<'switch'> = {
  sample: (reading) => {
    const ports = reading.now.ports.map((port) => portSample(port, reading));
    const total = (count: Counter) => sum(reading.now.ports.map(count));
    return {
      inBps: sum(ports.map(({ receivedBps }) => receivedBps)),
      outBps: sum(ports.map(({ sentBps }) => sentBps)),
      ports,
      totals: {
        packets: total(counter('rx_packets')),
        dropped: total(dropped),
        marked: total(marked),
        pausesSent: total(pauses('tx')),
        pausesReceived: total(pauses('rx')),
        storms: total(storms),
        queueBytes: total(({ queueBytes }) => queueBytes),
      },
    };
  },

  detail: ({ ports, rules }): SwitchDetail => ({
    ports: ports.map((port) => ({
      name: port.name,
      local: port.local,
      rateBps: port.rateBps,
      queueBytesMax: port.queueBytesMax,
      drops: dropsOf(port),
      pausesSent: pauses('tx')(port),
      pausesReceived: pauses('rx')(port),
      pausedPriorities: port.pausedPriorities,
      stormPriorities: port.stormPriorities,
    })),
    rules,
  }),

  health: (change) => {
    const inStorm = change.now.ports.find(({ stormPriorities }) => stormPriorities.length > 0);
    return firstTrouble([
      inStorm !== undefined && `pause storm at port ${inStorm.name}`,
      moved(change, dropped) > 0 && 'drops packets',
    ]);
  },

  events: (change) => [
    ...counted('loss', 'packet dropped', moved(change, dropped)),
    ...counted('failure', 'pause storm: the watchdog drops its packets', moved(change, storms)),
    ...counted('notice', 'pause storm is over', moved(change, counter('pfcwd_restored'))),
  ],
};

function moved({ now, before }: Change<SwitchDocument>, count: Counter): number {
  return sum(now.ports.map((port) => growth(count(port), countBefore(before, port, count))));
}

function portSample(port: Port, { before, seconds }: TimedChange<SwitchDocument>): AttachedPort {
  const perSecond = (count: Counter) => growth(count(port), countBefore(before, port, count)) / seconds;
  return {
    name: port.name,
    receivedBps: 8 * perSecond(counter('rx_bytes')),
    sentBps: 8 * perSecond(counter('tx_bytes')),
    queueBytes: port.queueBytes,
    droppedPerSecond: perSecond(dropped),
    markedPerSecond: perSecond(marked),
    pausesSentPerSecond: perSecond(pauses('tx')),
    pausesReceivedPerSecond: perSecond(pauses('rx')),
  };
}

function countBefore({ ports }: SwitchDocument, { name }: Port, count: Counter): number | undefined {
  const port = ports.find((candidate) => candidate.name === name);
  return port === undefined ? undefined : count(port);
}

function dropsOf({ counters }: Port): Array<{ reason: string; count: number }> {
  return Object.entries(counters)
    .filter(([name, count]) => name.includes('_dropped_') && count > 0)
    .map(([reason, count]) => ({ reason, count }));
}
