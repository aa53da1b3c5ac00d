/** In the order in which they run. */
import type { Scenario } from '../measurement/scenario.js';
import { analysts } from './analysts.js';
import { analystsLoad } from './analysts-load.js';
import { cores } from './cores.js';
import { growth } from './growth.js';
import { memory } from './memory.js';
import { peers } from './peers.js';
import { batches, pipeline, predictions, severalSkills, single, trafficScenarios } from './shared-service.js';
import { webhooks } from './webhooks.js';

export const scenarios: readonly Scenario[] = [
  single,
  batches,
  peers,
  pipeline,
  severalSkills,
  ...trafficScenarios,
  predictions,
  memory,
  analysts,
  analystsLoad,
  webhooks,
  cores,
  growth,
];
