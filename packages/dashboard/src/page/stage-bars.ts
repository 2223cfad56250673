import { formatShare } from '@rocev2/command/plot';
import type { AttachedStages } from '../messages/attached.js';
import { element } from './dom.js';

const WRITTEN_SHARE = 0.2;

export class StageBars {
  readonly #bars = element('div');
  readonly #legend = element('ol', { class: 'stages' });
  readonly element = element('div', {}, this.#bars, this.#legend);

  show(stages: readonly AttachedStages[]): void {
    this.#bars.replaceChildren(
      ...stages.flatMap(({ op, shares }) => [
        element('p', { class: 'muted' }, op),
        element(
          'div',
          { class: 'stage-bar', 'data-op': op },
          ...shares.map(({ stage, text, share }, i) => {
            const label = share >= WRITTEN_SHARE ? `${stage} ${formatShare(share)}` : '';
            const part = element(
              'span',
              { class: `part hue${i}`, title: `${stage} ${formatShare(share)}: ${text}` },
              label,
            );
            part.dataset['stage'] = stage;
            part.dataset['share'] = String(share);
            part.style.flexGrow = String(share);
            return part;
          }),
        ),
      ]),
    );
    if (stages.length === 0) this.#bars.append(element('p', { class: 'muted' }, 'no work request was polled yet'));
    this.#legend.replaceChildren(
      ...(stages[0]?.shares ?? []).map(({ stage, text }, i) =>
        element('li', {}, element('span', { class: `key hue${i}` }), `${stage} ${text}`),
      ),
    );
  }
}
