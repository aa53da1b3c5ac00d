import type { CallOptions } from './transport.js';
import type * as Api from './types.js';
import { WebhookCalls } from './webhook-calls.js';

/** Operations on the tenant's model. All reject with a SkilltraceError. */
export class ModelCalls extends WebhookCalls {
  /** How often answers were right that were given a probability. */
  async reliability(query: Api.ReliabilityQuery & CallOptions = {}): Promise<Api.Reliability> {
    return this.get('/api/v1/model/reliability', query);
  }

  /** How often the intervals of served forecasts held. */
  async coverage(options: CallOptions = {}): Promise<Api.Coverage> {
    return this.get('/api/v1/model/coverage', options);
  }
}
