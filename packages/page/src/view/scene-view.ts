/** One scene: its controls, what they lead to, and its packets. */

import { QUEUE_PAIR_COLORS, toneOfShare } from '@rocev2/command/plot';
import { element, TimeChart, VerdictView } from '@rocev2/dashboard/parts';
import type { Curve, Outcome, PacketColumns, SimulatedScene, TextKey, Values } from '../scenes/index.js';
import { durationNsOf, ladderTextsIn, nameIn, TEXTS, textIn } from '../scenes/index.js';
import { Bars, formatOf } from './bars.js';
import { Controls } from './controls.js';
import type { EngineWorker } from './engine-worker.js';
import type { PageState } from './location-state.js';
import type { RunReply } from './messages.js';
import { PacketWindow } from './packet-window.js';

const CHART_PX = 150;

interface ShownVariant {
  readonly timesNs: readonly number[];
  readonly samples: ReadonlyArray<readonly number[]>;
  readonly packets: PacketColumns | undefined;
  readonly outcome: Outcome | undefined;
  readonly failure: string | undefined;
}

const NOTHING: ShownVariant = {
  timesNs: [],
  samples: [],
  packets: undefined,
  outcome: undefined,
  failure: undefined,
};

export class SceneView {
  readonly element: HTMLElement;
  readonly #idea = element('p', { class: 'idea' });
  readonly #verdict = new VerdictView();
  readonly #controls = new Controls(
    (values) => this.#onValues(values),
    (values) => this.#runCode(values),
  );
  readonly #bars = new Bars();
  readonly #charts = element('div', { class: 'charts' });
  readonly #tabs = element('div', { class: 'tabs', role: 'group' });
  readonly #hash = element('p', { class: 'hash' });
  readonly #progress = element('progress', { max: 1, value: 0 });
  readonly #packetWindow: PacketWindow;
  readonly #headings: ReadonlyArray<readonly [HTMLElement, TextKey]>;
  readonly #engine: EngineWorker;
  readonly #onValues: (values: Values) => void;
  #state: PageState<SimulatedScene> | undefined;
  #variants = new Map<string, ShownVariant>();
  #durationNs = 1;
  #chosen = '';
  #lines: TimeChart[] = [];
  #curve: Curve | undefined;
  #curveChart: TimeChart | undefined;
  #startedMs = 0;
  /** The code that the user has run. A link contains code that must not run by itself. */
  #trusted = '';
  #isHeld = false;

  constructor(engine: EngineWorker, onValues: (values: Values) => void) {
    this.#engine = engine;
    this.#onValues = onValues;
    this.#packetWindow = new PacketWindow(
      (key, numbers) => this.#text(key, numbers),
      (timeNs) => this.#markTime(timeNs),
    );
    const [settings, results, overTime, packets] = Array.from({ length: 4 }, () => element('h2'));
    this.#headings = [
      [settings, 'settings'],
      [results, 'results'],
      [overTime, 'overTime'],
      [packets, 'packets'],
    ];
    this.element = element(
      'div',
      { class: 'scene' },
      element('section', { class: 'panel head' }, this.#idea, this.#verdict.element, this.#progress),
      element('section', { class: 'panel side' }, settings, this.#controls.element),
      element('section', { class: 'panel main-results' }, results, this.#bars.element),
      element('section', { class: 'panel over-time' }, overTime, this.#charts),
      element('section', { class: 'panel packets' }, packets, this.#tabs, this.#packetWindow.element, this.#hash),
    );
  }

  /** Runs again, unless only the language differs. */
  show(state: PageState<SimulatedScene>): void {
    const before = this.#state;
    this.#state = state;
    const { scene, values, seed } = state;
    this.#translate();
    this.#controls.show(
      scene.name,
      scene.parameters,
      values,
      (key) => this.#text(key),
      (value) => this.#nameOf(value),
    );
    const isSame =
      before?.scene === scene && before.seed === seed && JSON.stringify(before.values) === JSON.stringify(values);
    if (isSame) {
      this.#drawTabs();
      this.#drawResults();
      return;
    }
    const variants = scene.variants(values, seed);
    this.#durationNs = durationNsOf(variants[0]);
    this.#variants = new Map(variants.map(({ name }) => [name, NOTHING]));
    if (!this.#variants.has(this.#chosen)) this.#chosen = variants[0].name;
    const code = codeOf(scene, values);
    this.#isHeld = code !== '' && code !== this.#trusted;
    this.#startedMs = performance.now();
    // The worker simulates while the page is drawn.
    if (this.#isHeld) this.#engine.stop();
    else this.#engine.run({ scene: scene.name, values, seed }, code !== '', (reply) => this.#take(reply));
    this.#curve = scene.curve?.(values);
    this.#makeCharts(scene);
    this.#drawTabs();
    this.#drawResults();
    this.#showPackets();
  }

  /** Another view used the worker: the next `show` runs again. */
  leave(): void {
    this.#state = undefined;
  }

  #runCode(values: Values): void {
    const state = this.#state!;
    this.#trusted = codeOf(state.scene, values);
    if (this.#trusted !== codeOf(state.scene, state.values)) {
      this.#onValues(values);
      return;
    }
    this.#state = undefined;
    this.show(state);
  }

  #text(key: TextKey, numbers?: Readonly<Record<string, string>>): string {
    return textIn(this.#state?.language ?? 'en', key, numbers);
  }

  #nameOf(name: string): string {
    return nameIn(this.#state!.language, name);
  }

  #translate(): void {
    const { name } = this.#state!.scene;
    this.#idea.textContent = this.#text(`${name}.idea` as TextKey);
    for (const [heading, key] of this.#headings) heading.textContent = this.#text(key);
    this.#tabs.setAttribute('aria-label', this.#text('variant'));
    this.#progress.setAttribute('aria-label', this.#text('results'));
    this.#packetWindow.translate((key, numbers) => this.#text(key, numbers), ladderTextsIn(this.#state!.language));
    this.#makeCharts(this.#state!.scene);
  }

  #take(reply: RunReply): void {
    const { variant } = reply;
    const shown = this.#variants.get(variant)!;
    if (reply.kind === 'failed') {
      this.#variants.set(variant, { ...shown, failure: reply.message });
    } else if (reply.kind === 'packets' || reply.kind === 'result') {
      const outcome = reply.kind === 'result' ? reply.outcome : undefined;
      this.#variants.set(variant, { ...shown, packets: reply.packets, outcome });
      if (variant === this.#chosen) this.#showPackets();
      this.element.dataset['firstPacketMs'] ??= String(Math.round(performance.now() - this.#startedMs));
    } else {
      this.#variants.set(variant, { ...shown, timesNs: reply.timesNs, samples: reply.samples });
      const share = ((100 * reply.done) | 0).toString();
      this.#progress.title = this.#text('running', { name: this.#nameOf(variant), share });
    }
    this.#drawResults();
  }

  #drawResults(): void {
    const { scene, values } = this.#state!;
    const means = new Map(
      [...this.#variants].map(([name, { samples, outcome }]) => [name, outcome?.means ?? meansOf(samples, scene)]),
    );
    this.#bars.show(
      scene,
      means,
      (key) => this.#text(key),
      (name) => this.#nameOf(name),
    );
    for (const [i, chart] of this.#lines.entries()) {
      const variants = [...this.#variants.values()];
      const { timesNs } = variants.reduce((longest, one) =>
        one.timesNs.length > longest.timesNs.length ? one : longest,
      );
      chart.show(
        timesNs.map((ns) => ns / 1e6),
        variants.map(({ samples }) => timesNs.map((_, k) => samples[k]?.[i] ?? null)),
      );
    }
    const outcomes = [...this.#variants.values()].flatMap(({ outcome }) => outcome ?? []);
    this.#curveChart?.points(this.#curve?.points?.(outcomes) ?? []);
    const failures = [...this.#variants.values()].flatMap(({ failure }) => failure ?? []);
    const over = outcomes.length + failures.length;
    const isComplete = over === this.#variants.size;
    this.#progress.value = over / this.#variants.size;
    this.#progress.classList.toggle('is-over', isComplete || this.#isHeld);
    this.element.dataset['state'] = this.#isHeld ? 'held' : isComplete ? 'complete' : 'running';
    this.#hash.textContent = '';
    const chosen = this.#variants.get(this.#chosen)!.outcome;
    if (chosen !== undefined) {
      this.#hash.textContent = this.#text('hash', { hash: chosen.result.traceHash });
      this.#hash.title = this.#text('hash.hint');
    }
    if (this.#isHeld) {
      this.#verdict.show({ tone: 'idle', title: this.#text('held'), text: this.#text('held.text') });
      return;
    }
    if (failures.length > 0) {
      this.#verdict.show({ tone: 'bad', title: this.#text('failed', { message: failures[0] }), text: '' });
      return;
    }
    if (outcomes.length === 0) {
      this.#verdict.show({ tone: 'idle', title: '…', text: '' });
      return;
    }
    const { usefulShare, title, text, numbers } = scene.explain(values, outcomes);
    this.#verdict.show({
      tone: toneOfShare(usefulShare),
      title: this.#text(title, numbers),
      text: this.#text(text, numbers),
    });
  }

  #makeCharts(scene: SimulatedScene): void {
    for (const chart of this.#lines) chart.close();
    const labels = [...this.#variants.keys()].map((name) => this.#nameOf(name));
    const colors = QUEUE_PAIR_COLORS.filter((color) => scene.series.every((one) => one.color !== color));
    const xName = this.#text('chart.time');
    this.#lines = scene.series.map(
      ({ unit, max: yMax }) =>
        new TimeChart({
          labels,
          colors,
          format: formatOf(unit),
          xLabel: 'ms',
          xName,
          height: CHART_PX,
          ...(yMax !== undefined && { yMax }),
        }),
    );
    const titled = scene.series.map(({ label }, i) => this.#figure(label, this.#lines[i]));
    this.#charts.replaceChildren(...titled, ...this.#drawCurve());
  }

  #drawCurve(): HTMLElement[] {
    this.#curveChart?.close();
    if (this.#curve === undefined) return [];
    const { label, xLabel, formatX, formatY, x, lines, at } = this.#curve;
    const chart = new TimeChart({
      labels: lines.map(({ name }) => (name in TEXTS ? this.#text(name as TextKey) : this.#nameOf(name))),
      format: formatY,
      formatX: formatX ?? String,
      xName: this.#text(xLabel),
      height: CHART_PX,
    });
    this.#curveChart = chart;
    chart.marks(at === undefined ? [] : [{ x: at, text: String(at) }]);
    chart.show(
      x,
      lines.map(({ y }) => y),
    );
    return [this.#figure(label, chart)];
  }

  #figure(label: TextKey, { element: chart }: TimeChart): HTMLElement {
    return element('figure', {}, element('figcaption', {}, this.#text(label)), chart);
  }

  #markTime(timeNs: number): void {
    for (const chart of this.#lines ?? []) {
      chart.marks([{ x: timeNs / 1e6, text: '' }]);
      chart.redraw();
    }
  }

  #drawTabs(): void {
    const tabs = [...this.#variants.keys()].map((name) => {
      const tab = element(
        'button',
        { type: 'button', 'aria-pressed': String(name === this.#chosen) },
        this.#nameOf(name),
      );
      tab.addEventListener('click', () => {
        this.#chosen = name;
        this.#drawTabs();
        this.#showPackets();
        this.#drawResults();
      });
      return tab;
    });
    this.#tabs.replaceChildren(...tabs);
  }

  #showPackets(): void {
    this.#packetWindow.show(this.#variants.get(this.#chosen)!.packets, this.#durationNs);
  }
}

function codeOf({ parameters }: SimulatedScene, values: Values): string {
  const code = parameters.find(({ kind }) => kind === 'code');
  return code === undefined ? '' : values[code.name];
}

function meansOf(samples: ReadonlyArray<readonly number[]>, scene: SimulatedScene): number[] {
  return scene.series.map((_, i) => samples.reduce((sum, sample) => sum + sample[i], 0) / Math.max(1, samples.length));
}
