import { addStyle, element } from '@rocev2/dashboard/parts';
import { type FileScene, LANGUAGES, SCENES, type SimulatedScene, type TextKey, textIn } from '../scenes/index.js';
import { CaptureFileView } from './capture-file-view.js';
import { EngineWorker } from './engine-worker.js';
import { hashOf, type PageState, stateOf } from './location-state.js';
import { SceneView } from './scene-view.js';

class Page {
  readonly #title = element('h1');
  readonly #scenes = element('nav');
  readonly #seed = element('input', { type: 'number', min: 0, max: 2 ** 31 - 1, step: 1, id: 'seed' });
  readonly #seedText = element('span');
  readonly #copy = element('button', { type: 'button' });
  readonly #reset = element('button', { type: 'button' });
  readonly #language = element('button', { type: 'button' });
  readonly #theme = element('button', { type: 'button', id: 'theme' });
  /** Of a page that is the start page of documents. */
  readonly #documents = document.querySelector('link[rel=help]');
  readonly #documentsLink = element('a', { href: this.#documents?.getAttribute('href') ?? '' });
  readonly #main = element('main');
  readonly #engine = new EngineWorker();
  readonly #scene = new SceneView(this.#engine, (values) => this.#go({ ...this.#state, values }));
  readonly #capture = new CaptureFileView(this.#engine);
  #state: PageState = stateOf(location.hash, navigator.languages);

  start(): void {
    const seed = element('label', {}, this.#seedText, ' ', this.#seed);
    const links = this.#documents === null ? [] : [this.#documentsLink];
    const tools = element(
      'div',
      { class: 'tools' },
      ...links,
      seed,
      this.#copy,
      this.#reset,
      this.#language,
      this.#theme,
    );
    const isEmbedded = new URLSearchParams(location.search).has('embed');
    document.documentElement.classList.toggle('embedded', isEmbedded);
    document.body.replaceChildren(element('header', {}, this.#title, this.#scenes, tools), this.#main);
    this.#seed.addEventListener('change', () => this.#go({ ...this.#state, seed: this.#seed.valueAsNumber }));
    this.#reset.addEventListener('click', () => {
      this.#go({ ...stateOf(`#${this.#state.scene.name}`, []), language: this.#state.language });
    });
    this.#language.addEventListener('click', () => {
      const other = LANGUAGES.find((one) => one !== this.#state.language)!;
      this.#go({ ...this.#state, language: other });
    });
    this.#copy.addEventListener('click', () => void this.#copyLink());
    this.#theme.addEventListener('click', () => {
      const { dataset } = document.documentElement;
      const isDark = dataset['theme'] === undefined ? prefersDark() : dataset['theme'] === 'dark';
      dataset['theme'] = isDark ? 'light' : 'dark';
      this.#show();
    });
    addEventListener('hashchange', () => {
      this.#state = stateOf(location.hash, navigator.languages);
      this.#show();
    });
    this.#show();
  }

  #go(state: PageState): void {
    location.hash = hashOf(stateOf(hashOf(state), [])); // Impossible values become initial ones; `hashchange` shows it.
  }

  #show(): void {
    const text = (key: TextKey) => textIn(this.#state.language, key);
    document.documentElement.lang = this.#state.language;
    document.title = `${text(this.#state.scene.name as TextKey)} – rocev2`;
    this.#title.textContent = text('title');
    this.#scenes.setAttribute('aria-label', text('scenes'));
    this.#scenes.replaceChildren(
      ...SCENES.map(({ name }) => {
        const link = element('a', { href: `#${name}?lang=${this.#state.language}` }, text(name as TextKey));
        if (name === this.#state.scene.name) link.setAttribute('aria-current', 'page');
        return link;
      }),
    );
    this.#seed.value = String(this.#state.seed);
    this.#seed.title = text('seed.hint');
    this.#seedText.textContent = text('seed');
    this.#copy.textContent = text('copyLink');
    this.#reset.textContent = text('reset');
    this.#documentsLink.textContent = text('documents');
    this.#language.textContent = text('language');
    this.#language.lang = LANGUAGES.find((one) => one !== this.#state.language)!;
    this.#theme.textContent = text('theme');
    const { scene } = this.#state;
    if (scene.kind === 'file') this.#showFile({ ...this.#state, scene });
    else this.#showSimulated({ ...this.#state, scene });
  }

  #showSimulated(state: PageState<SimulatedScene>): void {
    if (!this.#main.contains(this.#scene.element)) this.#main.replaceChildren(this.#scene.element);
    this.#scene.show(state);
  }

  #showFile(state: PageState<FileScene>): void {
    if (!this.#main.contains(this.#capture.element)) {
      this.#scene.leave();
      this.#main.replaceChildren(this.#capture.element);
    }
    this.#capture.show(state);
  }

  async #copyLink(): Promise<void> {
    const link = new URL(hashOf(this.#state), location.href).href;
    history.replaceState(null, '', link);
    await navigator.clipboard?.writeText(link);
    this.#copy.textContent = textIn(this.#state.language, 'copied');
  }
}

function prefersDark(): boolean {
  return matchMedia('(prefers-color-scheme: dark)').matches;
}

addStyle();
new Page().start();
