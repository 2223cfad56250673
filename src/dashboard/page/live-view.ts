/** The page over a live lab: controls, packets in slow motion, numbers, charts, latency, events. */

import {
  LAB_LINKS,
  LAB_LOSS_RULES,
  LAB_OPS,
  type LabMessages,
  type LabPackets,
  type LabQueuePair,
  type LabSample,
  type LabSettings,
  type LabState,
} from '../messages/lab.js';
import { ChoiceGroup } from './choice-group.js';
import { byId, element, panel } from './dom.js';
import { EventList } from './event-list.js';
import { formatBytes, formatCount, formatPerSecond, formatRate, formatShare } from './format.js';
import { HistogramView } from './histogram.js';
import type { KeyAction } from './keyboard.js';
import { PacketPlayer } from './packet-player.js';
import { Readouts } from './readouts.js';
import { followStream, getJson, postJson, say } from './server-link.js';
import { TimeChart } from './time-chart.js';

/** A minute at four samples a second. */
const SAMPLES_SHOWN = 240;

const LOSS_LABELS: Readonly<Record<LabSettings['loss'], string>> = {
  none: 'nothing',
  'ip-id-lsb=0xff': '1 packet in 256',
  'random=0.001': '0.1 % at random',
  'random=0.01': '1 % at random',
};

const LINK_LABELS: Readonly<Record<LabSettings['link'], string>> = {
  fast: 'fast',
  slow: '200 Mb/s, ECN',
  'slow-pfc': '200 Mb/s, ECN, PFC',
};

const readoutsOfLab = () =>
  new Readouts<LabSample>([
    { label: 'goodput', value: ({ goodputBps }) => goodputBps, format: formatRate, isBad: (value) => value === 0 },
    { label: 'on the link', value: ({ linkBps }) => linkBps, format: formatRate },
    {
      label: 'of it useful',
      value: ({ goodputBps, linkBps }) => (linkBps === 0 ? 0 : Math.min(1, goodputBps / linkBps)),
      format: formatShare,
    },
    { label: 'lost', value: ({ totals }) => totals.packetsDropped, format: formatCount },
    { label: 'sent again', value: ({ totals }) => totals.packetsRetransmitted, format: formatCount },
    { label: 'messages done', value: ({ totals }) => totals.messages, format: formatCount },
    { label: 'NAKs', value: ({ totals }) => totals.naks, format: formatCount },
    { label: 'timeouts', value: ({ totals }) => totals.timeouts, format: formatCount },
    { label: 'queue to B', value: ({ queueBytes }) => queueBytes, format: formatBytes },
    { label: 'marked', value: ({ totals }) => totals.marks, format: formatCount },
    { label: 'CNPs', value: ({ totals }) => totals.cnps, format: formatCount },
    { label: 'pauses', value: ({ totals }) => totals.pauses, format: formatCount },
  ]);

/** Shows the lab and changes its settings. */
export class LiveView {
  readonly #state: LabState;
  readonly #samples: LabSample[];
  readonly #readouts = readoutsOfLab();
  readonly #throughput = new TimeChart({ labels: ['goodput', 'on the link'], format: formatRate });
  readonly #packets = new TimeChart({ labels: ['sent again', 'lost'], format: formatPerSecond });
  readonly #perQp: TimeChart;
  readonly #rates: TimeChart;
  readonly #alphas: TimeChart;
  readonly #queue = new TimeChart({ labels: ['towards B'], format: formatBytes });
  readonly #histogram = new HistogramView('messages');
  readonly #events = new EventList();
  readonly #player: PacketPlayer;
  readonly #op: ChoiceGroup<LabSettings['op']>;
  readonly #scheme: ChoiceGroup<LabSettings['scheme']>;
  readonly #loss: ChoiceGroup<LabSettings['loss']>;
  readonly #link: ChoiceGroup<LabSettings['link']>;
  readonly #cc: ChoiceGroup<LabSettings['cc']>;
  #isPaused = false;

  constructor(state: LabState) {
    this.#state = state;
    this.#samples = [...state.samples];
    const { queuePairs } = state;
    const { schemes, rateControls } = state.choices;
    this.#player = new PacketPlayer(queuePairs, async () => (await getJson<LabPackets>('packets')).packets);
    const labels = Array.from({ length: queuePairs }, (_, i) => `QP ${i + 1}`);
    this.#perQp = new TimeChart({ labels, format: formatRate });
    this.#rates = new TimeChart({ labels, format: formatRate });
    this.#alphas = new TimeChart({ labels, format: (alpha) => alpha.toFixed(2) });
    const plain = <T extends string>(values: readonly T[]) => values.map((value) => ({ value, label: value }));
    this.#scheme = new ChoiceGroup(
      'scheme',
      `recovery scheme (keys ${schemes.map((_, i) => i + 1).join(', ')})`,
      plain(schemes),
      (scheme) => this.#apply({ scheme }),
    );
    this.#op = new ChoiceGroup(
      'op',
      'operation',
      LAB_OPS.map((value) => ({ value, label: value.toUpperCase() })),
      (op) => this.#apply({ op }),
    );
    this.#loss = new ChoiceGroup(
      'loss',
      'the switch loses',
      LAB_LOSS_RULES.map((value) => ({ value, label: LOSS_LABELS[value] })),
      (loss) => this.#apply({ loss }),
    );
    this.#link = new ChoiceGroup(
      'link',
      'link to B',
      LAB_LINKS.map((value) => ({ value, label: LINK_LABELS[value] })),
      (link) => this.#apply({ link }),
    );
    this.#cc = new ChoiceGroup('cc', 'rate control', plain(rateControls), (cc) => this.#apply({ cc }));
  }

  /** What keys do here. */
  get keys(): readonly KeyAction[] {
    return [
      { key: ' ', name: 'space', does: 'pause and go on', run: () => this.togglePause() },
      ...this.#state.choices.schemes.slice(0, 9).map((scheme, i) => ({
        key: String(i + 1),
        name: String(i + 1),
        does: scheme,
        run: () => this.#apply({ scheme }),
      })),
      ...LAB_LOSS_RULES.map((loss, i) => ({
        key: 'nqwe'[i],
        name: 'nqwe'[i],
        does: `lose ${LOSS_LABELS[loss]}`,
        run: () => this.#apply({ loss }),
      })),
    ];
  }

  /** Builds the page and follows the stream. */
  start(view: HTMLElement): void {
    const { messageBytes, mtu } = this.#state;
    byId('title').textContent = `${messageBytes / 2 ** 20} MiB messages in packets of ${mtu} bytes, A to B`;
    view.append(
      panel(
        'Controls',
        'wide',
        element(
          'div',
          { class: 'controls' },
          ...[this.#scheme, this.#loss, this.#op, this.#link, this.#cc].map((group) => group.element),
        ),
      ),
      panel('Now', 'wide', this.#readouts.element),
      panel('Packets in slow motion', 'wide', this.#player.element),
      panel('Throughput', 'half', this.#throughput.element),
      panel('Repairs, packets a second', 'half', this.#packets.element),
      panel('Goodput by queue pair', 'third', this.#perQp.element),
      panel('Rate that DCQCN allows', 'third', this.#rates.element),
      panel('DCQCN’s alpha', 'third', this.#alphas.element),
      panel('Queue of the switch', 'third', this.#queue.element),
      panel('Message latency', 'third', this.#histogram.element),
      panel('Events', 'third', this.#events.element),
    );
    byId('pause').addEventListener('click', () => this.togglePause());
    byId('pause').setAttribute('aria-pressed', String(this.#isPaused));
    for (const event of this.#state.events) this.#events.add(event);
    this.#show();
    this.#listen();
  }

  /** Stops and continues what is shown; the lab goes on. */
  togglePause(): void {
    this.#isPaused = !this.#isPaused;
    this.#player.isPaused = this.#isPaused;
    byId('pause').setAttribute('aria-pressed', String(this.#isPaused));
    say(this.#isPaused ? 'paused: the lab goes on' : 'live');
    if (!this.#isPaused) this.#show();
  }

  #listen(): void {
    followStream<LabMessages>({
      sample: (sample) => {
        this.#samples.push(sample);
        if (this.#samples.length > SAMPLES_SHOWN) this.#samples.shift();
        if (!this.#isPaused) this.#show();
      },
      event: (event) => {
        this.#events.add(event);
        if (event.kind === 'settings') this.#player.restart();
      },
    });
  }

  #show(): void {
    const samples = this.#samples;
    const now = samples.at(-1);
    if (now === undefined) return;
    const x = samples.map(({ timeNs }) => timeNs / 1e9);
    this.#throughput.show(x, [samples.map((s) => s.goodputBps), samples.map((s) => s.linkBps)]);
    this.#packets.show(x, [samples.map((s) => s.retransmittedPerSecond), samples.map((s) => s.droppedPerSecond)]);
    const perQp = <T>(value: (queuePair: LabQueuePair) => T) =>
      now.queuePairs.map((_, i) => samples.map((s) => value(s.queuePairs[i])));
    this.#perQp.show(
      x,
      perQp(({ goodputBps }) => goodputBps),
    );
    this.#rates.show(
      x,
      perQp(({ rateBps }) => rateBps),
    );
    this.#alphas.show(
      x,
      perQp(({ alpha }) => alpha),
    );
    this.#queue.show(x, [samples.map(({ queueBytes }) => queueBytes)]);
    this.#histogram.show(now.latency);
    this.#readouts.show(now, now.number);
    for (const { name, packetsPerSecond } of now.ports) {
      if (name === 'a' || name === 'b') this.#player.label(name, `sends ${formatCount(packetsPerSecond)} packets/s`);
    }
    this.#player.label('switch', `loses ${formatCount(now.droppedPerSecond)} packets/s`);
    this.#op.show(now.settings.op);
    this.#scheme.show(now.settings.scheme);
    this.#loss.show(now.settings.loss);
    this.#link.show(now.settings.link);
    this.#cc.show(now.settings.cc);
  }

  async #apply(change: Partial<LabSettings>): Promise<void> {
    try {
      await postJson('settings', change);
    } catch (error) {
      say((error as Error).message, 'bad');
    }
  }
}
