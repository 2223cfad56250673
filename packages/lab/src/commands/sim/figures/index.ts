import { namesHint, RoceError } from 'rocev2/internal/core';
import type { Figure } from './figure.js';
import { FLUID_FIGURES } from './fluid-figures.js';
import { INCIDENT_FIGURES } from './incident-figures.js';
import { MODEL_FIGURES } from './model-and-packets.js';
import { PACKET_FIGURES } from './packet-figures.js';

export const FIGURES: readonly Figure[] = [...MODEL_FIGURES, ...FLUID_FIGURES, ...PACKET_FIGURES, ...INCIDENT_FIGURES];

export function figureNamed(name: string): Figure {
  const found = FIGURES.find((figure) => figure.name === name);
  if (found !== undefined) return found;
  const names = FIGURES.map((figure) => figure.name);
  throw new RoceError('ERR_ROCE_UNKNOWN_NAME', `there is no figure '${name}'`, namesHint(name, names, 'there are'));
}
