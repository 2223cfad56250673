/** `rocev2 sim run --json` in a report. */

import { scenarioBody } from '../sim/page.js';
import { isScenarioResult } from '../sim/result-schema.js';
import type { SectionReader } from './section.js';

/** Undefined for documents of another kind. */
export const scenarioSection: SectionReader = (document) => {
  if (!isScenarioResult(document)) return undefined;
  const { title, scenario } = document;
  return { title: title === '' ? scenario : title, body: scenarioBody(document, 3) };
};
