/** Where a publication has an order and no number, the value is 1 if ours has the same order, else 0. */

import { RETH_BYTES } from 'rocev2/internal/packet';
import type { ScenarioResult } from '../../../sim/scenario/result.js';
import { PACKET_OVERHEAD_BYTES } from '../../../sim/scenario/slowdown.js';
import { MACSEC_BYTES } from '../../../sim/scenarios/incidents.js';
import { mean, quantile } from '../../../sim/statistics.js';
import { compared, type Figure, type FigureRun, type FigureValue } from './figure.js';

const GB = 1e9;

function claim(what: string, holds: boolean): FigureValue {
  return { what, unit: '1: so', published: 1, ours: holds ? 1 : 0 };
}

const pausesAt = ({ queues }: ScenarioResult, port: string) =>
  queues.find((queue) => queue.port === port)!.receivedPauseFrames;

const micros = (ns: number | null) => (ns ?? Number.NaN) / 1000;

function goodputs(runs: Readonly<Record<string, ScenarioResult>>): FigureRun['chart'] {
  const [first] = Object.values(runs);
  return {
    xLabel: 'time (ms)',
    x: first.series.timeNs.map((ns) => ns / 1e6),
    panels: [
      {
        yLabel: 'payload of all flows, Gb/s',
        series: Object.entries(runs).map(([name, { series }]) => ({
          name,
          values: series.timeNs.map((_, i) => series.rateBps.reduce((sum, rates) => sum + rates[i], 0) / GB),
        })),
      },
    ],
  };
}

function sideBySide(
  xLabel: string,
  runs: readonly ScenarioResult[],
  panels: ReadonlyArray<readonly [yLabel: string, of: (run: ScenarioResult) => number]>,
): FigureRun['chart'] {
  return {
    xLabel,
    x: runs.map((_, i) => i),
    panels: panels.map(([yLabel, of]) => ({ yLabel, series: [{ name: 'ours', values: runs.map(of) }] })),
  };
}

const deadlock: Figure = {
  name: 'sigcomm16-deadlock',
  title: 'A circle of pauses among switches: nothing moves until the circle is broken',
  source: "SIGCOMM'16, section 4.2",
  by: 'packets',
  note: 'There the circle came from flooded packets; here it is a ring of five switches, each of which sends two switches on. The watchdog frees the ring, and the same flows close it again: only the open ring cures.',
  async run(lab) {
    const stuck = await lab.packets('deadlock');
    const open = await lab.packets('deadlock-no-circle');
    const watched = await lab.packets('deadlock-watchdog');
    return {
      values: [
        compared('goodput in the deadlock', 'Gb/s', 0, stuck.summary.goodputBps / GB),
        compared('lost in the deadlock', 'packets', 0, stuck.summary.droppedPackets),
        claim('without the circle every flow continues', open.summary.minGoodputBps > 0),
        claim('without the circle nothing is lost', open.summary.droppedPackets === 0),
      ],
      chart: goodputs({ ring: stuck, 'open ring': open, 'ring with watchdog': watched }),
    };
  },
};

const slowReceiver: Figure = {
  name: 'sigcomm16-slow-receiver',
  title: 'A receiver whose cache misses: its pauses spread, and larger pages or more memory stop them',
  source: "SIGCOMM'16, section 4.4",
  by: 'packets',
  note: 'How long a miss takes is not published: 400 ns here, 50 ns for a hit.',
  async run(lab) {
    const small = await lab.packets('slow-receiver');
    const buffer = await lab.packets('slow-receiver-buffer');
    const pages = await lab.packets('slow-receiver-pages');
    const tail = ({ summary }: ScenarioResult) => micros(summary.smallCompletions.p99Ns);
    return {
      values: [
        claim('a slow receiver pauses its switch', pausesAt(small, 's1>h4') > 0),
        claim('and that the next switch', pausesAt(small, 's0>s1') > 0),
        claim('so that messages to others are late', tail(small) > 1.1 * tail(pages)),
        compared('pauses with larger pages', 'frames', 0, pausesAt(pages, 's1>h4')),
        compared('spread with more memory', 'frames', 0, pausesAt(buffer, 's0>s1')),
      ],
      chart: sideBySide(
        '0: small pages, 1: more memory, 2: larger pages',
        [small, buffer, pages],
        [
          ['p99 of messages to others, us', tail],
          ['pauses of the receiver', (run) => pausesAt(run, 's1>h4')],
          ['pauses between switches', (run) => pausesAt(run, 's0>s1')],
        ],
      ),
    };
  },
};

const alpha: Figure = {
  name: 'sigcomm16-alpha',
  title: 'New switches with a threshold of 1/64 instead of 1/16: pauses, and late messages',
  source: "SIGCOMM'16, section 6.2",
  by: 'packets',
  note: 'The publication shows the counters of a service before and after; there is nothing of it that another network could repeat but the order.',
  async run(lab) {
    const old = await lab.packets('alpha-1-16');
    const changed = await lab.packets('alpha-1-64');
    const median = ({ summary }: ScenarioResult) => micros(summary.smallCompletions.p50Ns);
    return {
      values: [
        claim('with 1/64 there are more pauses', changed.summary.pauseFrames > old.summary.pauseFrames),
        claim('and messages take longer', median(changed) > median(old)),
      ],
      chart: sideBySide(
        '0: alpha 1/16, 1: alpha 1/64',
        [old, changed],
        [
          ['pauses', ({ summary }) => summary.pauseFrames],
          ['median of small messages, us', median],
        ],
      ),
    };
  },
};

const closFigure: Figure = {
  name: 'sigcomm16-clos',
  title: 'A Clos network with 24 connections for each link between leaves and spines',
  source: "SIGCOMM'16, section 5.4: 60 % of the links",
  by: 'packets',
  note: 'Here are two podsets of 24 hosts, with as many connections a link as published. Ours are long flows with up to 16,384 packets in flight, which fill nearly every link that ECMP gives them.',
  async run(lab) {
    const { queues, summary } = await lab.packets('clos');
    const links = queues.filter(({ port }) => /^l\d+>p/.test(port));
    const used = links.map(({ utilization }) => utilization);
    return {
      values: [
        compared('mean use of the links', '', 0.6, mean(used)),
        compared('lost', 'packets', 0, summary.droppedPackets),
      ],
      chart: {
        xLabel: 'link between leaf and spine, the most used first',
        x: used.map((_, i) => i + 1),
        panels: [
          {
            yLabel: 'share of the link that is used',
            series: [
              { name: 'ours', values: [...used].sort((one, other) => other - one) },
              { name: 'published: mean 0.6', values: used.map(() => 0.6) },
            ],
          },
        ],
      },
    };
  },
};

function ascendingMicros(flows: ReadonlyArray<{ readonly completionNs: number | null }>): Float64Array {
  return Float64Array.from(flows, ({ completionNs }) => micros(completionNs)).sort();
}

const tcpLatency: Figure = {
  name: 'sigcomm16-6',
  title: 'Latency of messages over TCP and over RDMA',
  source: "SIGCOMM'16, figure 6 and section 5.4: Pingmesh in a data centre, half of whose traffic was TCP",
  by: 'packets',
  note: 'The publication names two causes, the kernel and packets that are lost in incasts. Simulated hosts take no time, so only the second cause remains. Up to p99, TCP is as fast as RDMA: losses alone do not give the published 700 us. Above p99, a message whose last packets are lost waits for a timeout of 10 ms, while RDMA loses nothing. We measure messages of 16 KB in incasts; the publication measures probes during such traffic.',
  async run(lab) {
    const overTcp = await lab.tcp('service-latency');
    const overRdma = await lab.packets('service-latency');
    const [tcp, rdma] = [ascendingMicros(overTcp.flows), ascendingMicros(overRdma.flows)];
    const percents = Array.from({ length: 200 }, (_, i) => 90 + (i + 1) / 20);
    const value = (what: string, published: number, ours: number) => compared(what, 'us', published, ours);
    const line = (name: string, times: Float64Array) => ({
      name,
      values: percents.map((percent) => quantile(times, percent / 100)),
    });
    return {
      values: [
        value('RDMA, p99', 90, quantile(rdma, 0.99)),
        value('RDMA, p99.9', 200, quantile(rdma, 0.999)),
        value('TCP, p99', 700, quantile(tcp, 0.99)),
        claim("RDMA's p99.9 is below TCP's p99", quantile(rdma, 0.999) < quantile(tcp, 0.99)),
        claim("TCP's tail goes up to several ms", quantile(tcp, 1) > 2000),
        claim('TCP loses packets', overTcp.droppedPackets > 0),
        compared('lost under RDMA', 'packets', 0, overRdma.summary.droppedPackets),
      ],
      chart: {
        xLabel: 'percent of the messages',
        x: percents,
        panels: [{ yLabel: 'completed within, us', logFrom: 10, series: [line('TCP', tcp), line('RDMA', rdma)] }],
      },
    };
  },
};

const tuning: Figure = {
  name: 'nsdi23-11',
  title: 'p99 of completion times with pauses alone, with DCQCN, and with tuned DCQCN',
  source: "NSDI'23, figure 11, which has no numbers",
  by: 'packets',
  note: 'What was tuned, and the traffic, are not published. Pauses alone have the best p99 here: it is that of the longest of 420 flows, which gets the whole link only with pauses. For messages below 100 KB the order is reversed: 1924 us with pauses, 224 and 290 us with DCQCN.',
  async run(lab) {
    const pauses = await lab.packets('p99-pfc');
    const plain = await lab.packets('p99-dcqcn');
    const tuned = await lab.packets('p99-tuned');
    const p99 = ({ summary }: ScenarioResult) => micros(summary.completions.p99Ns);
    const frames = ({ summary }: ScenarioResult) => summary.pauseFrames;
    return {
      values: [
        claim('DCQCN has fewer pauses', frames(plain) < frames(pauses)),
        claim('DCQCN has a worse p99 than pauses alone', p99(plain) > p99(pauses)),
        claim('tuned DCQCN has a better one than DCQCN', p99(tuned) < p99(plain)),
        claim('and than pauses alone', p99(tuned) < p99(pauses)),
      ],
      chart: sideBySide(
        '0: pauses alone, 1: DCQCN, 2: tuned DCQCN',
        [pauses, plain, tuned],
        [
          ['p99 of all flows, us', p99],
          ['p99 of flows below 100 KB, us', ({ summary }) => micros(summary.smallCompletions.p99Ns)],
          ['pauses', frames],
        ],
      ),
    };
  },
};

const loopback: Figure = {
  name: 'nsdi23-loopback',
  title: 'Loopback and remote traffic share the lanes of a NIC: pauses that the watchdog does not end',
  source: "NSDI'23, loopback RDMA: 2:1",
  by: 'packets',
  note: 'Loopback is not simulated as traffic: the NIC of the receiver spends half of its time on it.',
  async run(lab) {
    const shared = await lab.packets('loopback');
    const alone = await lab.packets('loopback-off');
    const part = shared.summary.goodputBps / alone.summary.goodputBps;
    return {
      values: [
        compared('goodput relative to that without loopback', '', 0.5, part),
        claim('the NIC pauses its switch', pausesAt(shared, 's0>h2') > 0),
        compared('dropped by the watchdog', 'packets', 0, shared.summary.droppedPackets),
        compared('pauses without loopback', 'frames', 0, pausesAt(alone, 's0>h2')),
      ],
      chart: goodputs({ 'with loopback': shared, 'without it': alone }),
    };
  },
};

/** Bytes of a message and path MTU. */
const MACSEC_MESSAGES = [
  [64, 1024],
  [256, 1024],
  [1024, 1024],
  [65_536, 1024],
  [65_536, 4096],
] as const;
const MACSEC_DRAWN_MTU = 1024;

const macsec: Figure = {
  name: 'nsdi23-macsec',
  title: 'What MACsec takes from the goodput, by the size of messages and packets',
  source: "IEEE 802.1AE clause 9: 32 bytes a frame (a SecTAG of 16, an ICV of 16); NSDI'23 has no number",
  by: 'packets',
  note: "The published value is W / (W + 32 n) for a message of n frames that take W bytes on Ethernet; ours is goodput with MACsec over goodput without. What NSDI'23 met, switches that did not agree on whether pauses are encrypted, is not shown: there are no ciphers on these links.",
  async run(lab) {
    const values: FigureValue[] = [];
    const drawn: Array<{
      readonly bytes: number;
      readonly plain: number;
      readonly secured: number;
      readonly computed: number;
    }> = [];
    for (const [bytes, mtu] of MACSEC_MESSAGES) {
      const set = [`flows[0].message=${bytes}`, `nic.mtu=${mtu}`];
      const plain = (await lab.packets('macsec', [...set, 'topology.extra=0'])).summary.goodputBps;
      const secured = (await lab.packets('macsec', set)).summary.goodputBps;
      const packets = Math.ceil(bytes / mtu);
      const wireBytes = bytes + packets * PACKET_OVERHEAD_BYTES + RETH_BYTES;
      const published = wireBytes / (wireBytes + packets * MACSEC_BYTES);
      values.push(compared(`${bytes} bytes in packets of up to ${mtu}`, '', published, secured / plain));
      const computed = (published * plain) / GB;
      if (mtu === MACSEC_DRAWN_MTU) drawn.push({ bytes, plain: plain / GB, secured: secured / GB, computed });
    }
    return {
      values,
      chart: {
        xLabel: `bytes of a message, log2, in packets of up to ${MACSEC_DRAWN_MTU}`,
        x: drawn.map(({ bytes }) => Math.log2(bytes)),
        panels: [
          {
            yLabel: 'goodput, Gb/s',
            series: [
              { name: 'without MACsec', values: drawn.map(({ plain }) => plain) },
              { name: 'with MACsec', values: drawn.map(({ secured }) => secured) },
              { name: 'computed', values: drawn.map(({ computed }) => computed) },
            ],
          },
        ],
      },
    };
  },
};

export const INCIDENT_FIGURES: readonly Figure[] = [
  deadlock,
  slowReceiver,
  alpha,
  tcpLatency,
  closFigure,
  tuning,
  loopback,
  macsec,
];
