import { formatBytes, formatCount, formatCounted, formatRate, formatShare } from '@rocev2/command/plot';
import type { LabMessages, LabPackets, LabSample, LabSettings, LabState } from '../messages/lab-messages.js';
import { byId, panel } from './dom.js';
import { EventList } from './event-list.js';
import { HistogramView } from './histogram.js';
import type { KeyAction } from './keyboard.js';
import { LabCharts } from './lab-charts.js';
import { LabControls } from './lab-controls.js';
import { ladderPacketOf, stagePacketOf } from './lab-ladder.js';
import { labVerdict } from './lab-verdict.js';
import { LadderView } from './ladder-view.js';
import { PacketPlayer } from './packet-player.js';
import type { StagePacket } from './packet-stage.js';
import { Readouts } from './readouts.js';
import { followStream, getJson, postJson, say } from './server-link.js';
import { VerdictView } from './verdict-view.js';

const SAMPLES_SHOWN = 960;

const readoutsOfLab = () =>
  new Readouts<LabSample>({
    '': [
      ['goodput', ({ goodputBps }) => goodputBps, formatRate],
      ['on the link', ({ linkBps }) => linkBps, formatRate],
      ['of it useful', (sample) => usefulNow(sample), formatShare],
      ['queue to B', ({ queueBytes }) => queueBytes, formatBytes],
    ],
    'since the start of the lab': [
      ['messages done', ({ totals }) => totals.messages, formatCount],
      ['lost', ({ totals }) => totals.packetsDropped, formatCount],
      ['retransmitted', ({ totals }) => totals.packetsRetransmitted, formatCount],
      ['NAKs', ({ totals }) => totals.naks, formatCount],
      ['timeouts', ({ totals }) => totals.timeouts, formatCount],
      ['marked', ({ totals }) => totals.marks, formatCount],
      ['CNPs', ({ totals }) => totals.cnps, formatCount],
      ['pauses', ({ totals }) => totals.pauses, formatCount],
    ],
  });

function usefulNow({ goodputBps, linkBps }: LabSample): number {
  return linkBps === 0 ? 0 : Math.min(1, goodputBps / linkBps);
}

export class LiveView {
  readonly #state: LabState;
  readonly #samples: LabSample[];
  readonly #controls: LabControls;
  readonly #verdict = new VerdictView();
  readonly #readouts = readoutsOfLab();
  readonly #charts: LabCharts;
  readonly #histogram = new HistogramView({
    of: (count) => formatCounted(count, 'message'),
    none: 'No message has completed since the settings changed.',
  });
  readonly #events = new EventList();
  readonly #player: PacketPlayer;
  readonly #ladder = new LadderView({ a: 'endpoint A', b: 'endpoint B' }, { isFolded: true });
  #isPaused = false;

  constructor(state: LabState) {
    this.#state = state;
    this.#samples = [...state.samples];
    this.#controls = new LabControls(state.choices, (change) => void this.#apply(change));
    this.#charts = new LabCharts(state.queuePairs);
    this.#player = new PacketPlayer(state.queuePairs, () => this.#nextStretch());
  }

  get keys(): readonly KeyAction[] {
    const pause = { key: ' ', name: 'space', does: 'pause and continue', run: () => this.togglePause() };
    return [pause, ...this.#controls.keys];
  }

  start(view: HTMLElement): void {
    const { messageBytes, mtu } = this.#state;
    byId('title').textContent = `${messageBytes / 2 ** 20} MiB messages in packets of ${mtu} bytes, A to B`;
    view.append(
      this.#controls.element,
      panel('Now', 'half', this.#verdict.element, this.#readouts.element),
      this.#charts.throughput,
      panel('Packets in slow motion', 'wide', this.#player.element),
      panel('The same packets as a ladder', 'wide', this.#ladder.element),
      ...this.#charts.panels,
      panel('Message latency', 'third', this.#histogram.element),
      panel('Events', 'third', this.#events.element),
    );
    byId('pause').addEventListener('click', () => this.togglePause());
    byId('pause').setAttribute('aria-pressed', String(this.#isPaused));
    for (const event of this.#state.events) this.#take(event);
    this.#show();
    this.#listen();
  }

  togglePause(): void {
    this.#isPaused = !this.#isPaused;
    this.#player.isPaused = this.#isPaused;
    byId('pause').setAttribute('aria-pressed', String(this.#isPaused));
    say(this.#isPaused ? 'paused: the lab continues' : 'live');
    if (!this.#isPaused) this.#show();
  }

  async #nextStretch(): Promise<StagePacket[]> {
    const { packets } = await getJson<LabPackets>('packets');
    this.#ladder.show(packets.map((packet, i) => ladderPacketOf(packet, i + 1, this.#state.queuePairs)));
    return packets.map(stagePacketOf);
  }

  #listen(): void {
    followStream<LabMessages>({
      sample: (sample) => {
        this.#samples.push(sample);
        if (this.#samples.length > SAMPLES_SHOWN) this.#samples.shift();
        if (!this.#isPaused) this.#show();
      },
      event: (event) => {
        this.#take(event);
        if (event.kind === 'settings') this.#player.restart();
      },
    });
  }

  #take(event: LabMessages['event']): void {
    this.#events.add(event);
    this.#charts.mark(event);
  }

  #show(): void {
    const now = this.#samples.at(-1);
    if (now === undefined) return;
    this.#charts.show(this.#samples.slice());
    this.#histogram.show(now.latency);
    this.#readouts.show(now, now.number);
    this.#verdict.show(labVerdict(this.#state, this.#samples));
    for (const { name, packetsPerSecond } of now.ports) {
      if (name === 'a' || name === 'b') {
        this.#player.label(name, ['sends', formatCounted(packetsPerSecond, 'packet', '/s')]);
      }
    }
    this.#player.label('switch', ['loses', formatCounted(now.droppedPerSecond, 'packet', '/s')]);
    this.#controls.show(now.settings);
  }

  async #apply(change: Partial<LabSettings>): Promise<void> {
    try {
      await postJson('settings', change);
    } catch (error) {
      say((error as Error).message, 'bad');
    }
  }
}
