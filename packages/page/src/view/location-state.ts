/** A run in the address of the page: `#SCENE?seed=1&NAME=VALUE`. */

import { completed, LANGUAGES, type Language, SCENES, type Scene, type Values } from '../scenes/index.js';

const SEED_MAX = 2 ** 31 - 1;

export interface PageState<S extends Scene = Scene> {
  readonly scene: S;
  readonly seed: number;
  readonly values: Values;
  readonly language: Language;
}

export function stateOf(hash: string, languages: readonly string[]): PageState {
  const [name, query = ''] = hash.replace(/^#/, '').split('?');
  const given = Object.fromEntries(new URLSearchParams(query));
  const scene = SCENES.find((one) => one.name === name) ?? SCENES[0];
  const seed = Number(given['seed'] ?? 1);
  const wanted = given['lang'] ?? languages.map((tag) => tag.slice(0, 2)).find(isLanguage);
  return {
    scene,
    seed: Number.isInteger(seed) && seed >= 0 && seed <= SEED_MAX ? seed : 1,
    values: completed(scene, given),
    language: wanted !== undefined && isLanguage(wanted) ? wanted : 'en',
  };
}

function isLanguage(tag: string): tag is Language {
  return (LANGUAGES as readonly string[]).includes(tag);
}

/** Holds all values, so that a link stays valid when initial values change. */
export function hashOf({ scene, seed, values, language }: PageState): string {
  const query = new URLSearchParams({ seed: String(seed), ...values, lang: language });
  return `#${scene.name}?${query}`;
}
