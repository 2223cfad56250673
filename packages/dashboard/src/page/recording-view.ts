import { COLORS, formatBytes, formatCount, formatNs, formatRate } from '@rocev2/command/plot';
import type { ScenarioResult } from '@rocev2/lab/internal';
import { byId, element, panel } from './dom.js';
import type { KeyAction } from './keyboard.js';
import { type Moment, NetworkView } from './network-view.js';
import { Readouts } from './readouts.js';
import { TimeChart } from './time-chart.js';

const LINES_MAX = 16;
const FRAME_MS = 40;
const PLAY_MS = 20_000;

function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}

function momentAt({ series }: ScenarioResult, index: number): Moment {
  const upTo = (values: readonly number[]) => values.slice(0, index + 1).reduce((sum, value) => sum + value, 0);
  const queueBytes = new Map(Object.entries(series.queueBytes).map(([port, values]) => [port, values[index]]));
  const rateBps = series.rateBps.map((values) => values[index]);
  const receivedBps = new Map(Object.entries(series.receivedBps).map(([host, values]) => [host, values[index]]));
  return {
    timeNs: series.timeNs[index],
    queueBytes,
    rateBps,
    receivedBps,
    fullestBytes: Math.max(0, ...queueBytes.values()),
    cnps: upTo(series.cnps),
    pauseFrames: upTo(series.pauseFrames),
  };
}

export class RecordingView {
  readonly #result: ScenarioResult;
  readonly #readouts = new Readouts<Moment>({
    '': [
      ['time', ({ timeNs }) => timeNs, formatNs],
      ['sent by all hosts', ({ rateBps }) => sumOf(rateBps), formatRate],
      ['received by all hosts', ({ receivedBps }) => sumOf([...receivedBps.values()]), formatRate],
      ['fullest queue', ({ fullestBytes }) => fullestBytes, formatBytes],
      ['CNPs so far', ({ cnps }) => cnps, formatCount],
      ['pauses so far', ({ pauseFrames }) => pauseFrames, formatCount],
    ],
  });
  readonly #network: NetworkView;
  readonly #slider: HTMLInputElement;
  readonly #charts: TimeChart[] = [];
  #timer: ReturnType<typeof setInterval> | undefined;

  readonly keys: readonly KeyAction[] = [
    { key: ' ', name: 'space', does: 'play and pause', run: () => this.togglePlay() },
    { key: 'ArrowRight', name: '→', does: 'one step later', run: () => this.#go(this.#index + 1) },
    { key: 'ArrowLeft', name: '←', does: 'one step earlier', run: () => this.#go(this.#index - 1) },
    { key: 'Home', name: 'Home', does: 'to the start', run: () => this.#go(0) },
    { key: 'End', name: 'End', does: 'to the end', run: () => this.#go(this.#last) },
  ];

  constructor(result: ScenarioResult) {
    this.#result = result;
    this.#network = new NetworkView(result);
    this.#slider = element('input', { type: 'range', min: 0, max: this.#last, value: 0, 'aria-label': 'time' });
  }

  start(view: HTMLElement): void {
    const { title, scenario } = this.#result;
    byId('title').textContent = title === '' ? scenario : title;
    byId('status').textContent = 'a recorded simulation';
    const play = byId('pause');
    play.textContent = 'Play';
    play.addEventListener('click', () => this.togglePlay());
    this.#slider.addEventListener('input', () => this.#show());
    const charts = this.#chartPanels();
    view.append(
      panel('Time', 'wide', this.#slider, this.#readouts.element),
      panel('Network: payload sent and received, fill of queues', 'wide', this.#network.element),
      ...charts,
    );
    this.#show();
  }

  togglePlay(): void {
    const isPlaying = this.#timer !== undefined;
    clearInterval(this.#timer);
    const step = Math.max(1, Math.round(this.#last / (PLAY_MS / FRAME_MS)));
    this.#timer = isPlaying ? undefined : setInterval(() => this.#advance(step), FRAME_MS);
    if (!isPlaying && this.#index === this.#last) this.#go(0);
    byId('pause').textContent = isPlaying ? 'Play' : 'Pause';
    byId('pause').setAttribute('aria-pressed', String(!isPlaying));
  }

  get #index(): number {
    return Number(this.#slider.value);
  }

  get #last(): number {
    return this.#result.series.timeNs.length - 1;
  }

  #advance(step: number): void {
    this.#go(this.#index + step);
    if (this.#index === this.#last) this.togglePlay();
  }

  #go(index: number): void {
    this.#slider.value = String(Math.min(Math.max(index, 0), this.#last));
    this.#show();
  }

  #show(): void {
    const moment = momentAt(this.#result, this.#index);
    this.#slider.setAttribute('aria-valuetext', formatNs(moment.timeNs));
    this.#readouts.show(moment, this.#index);
    this.#network.show(moment);
    for (const chart of this.#charts) chart.mark(this.#index);
  }

  #chartPanels(): HTMLElement[] {
    const { series, queues, flows } = this.#result;
    const used = queues.filter(({ port }) => port in series.queueBytes).sort((a, b) => b.meanBytes - a.meanBytes);
    const fullest = used.slice(0, LINES_MAX);
    const largest = [...flows].sort((a, b) => b.bytes - a.bytes || a.id - b.id).slice(0, LINES_MAX);
    const shown = largest.sort((a, b) => a.id - b.id);
    const chart = (
      title: string,
      lines: ReadonlyArray<{ name: string; values: readonly number[]; color?: string }>,
      format: (value: number) => string,
    ) => {
      if (lines.length === 0) return [];
      const colors = lines.flatMap(({ color }) => color ?? []);
      const made = new TimeChart({ labels: lines.map(({ name }) => name), format, xLabel: 'ms', colors });
      made.show(
        series.timeNs.map((ns) => ns / 1e6),
        lines.map(({ values }) => values),
      );
      this.#charts.push(made);
      return [panel(title, 'half', made.element)];
    };
    const [first, second] = series.timeNs;
    const interval = second === undefined ? '' : ` in each ${formatNs(second - first)}`;
    const signals = [
      { name: 'CNPs', values: series.cnps, color: COLORS.cnp },
      { name: 'pause frames', values: series.pauseFrames, color: COLORS.pause },
    ].filter(({ values }) => values.some((value) => value > 0));
    return [
      ...chart(
        flows.length > LINES_MAX
          ? `Payload sent for the first time: the ${LINES_MAX} largest of ${flows.length} flows`
          : 'Payload sent for the first time, by flow',
        shown.map(({ id, from, to }) => ({ name: `${id}: ${from}>${to}`, values: series.rateBps[id] })),
        formatRate,
      ),
      ...chart(
        'Payload received, retransmissions included, by host',
        Object.entries(series.receivedBps)
          .slice(0, LINES_MAX)
          .map(([name, values]) => ({ name, values })),
        formatRate,
      ),
      ...chart(
        fullest.length < used.length
          ? `The ${fullest.length} fullest of ${used.length} egress queues`
          : 'Egress queues',
        fullest.map(({ port }) => ({ name: port, values: series.queueBytes[port] })),
        formatBytes,
      ),
      ...chart(`Signals${interval}`, signals, formatCount),
    ];
  }
}
