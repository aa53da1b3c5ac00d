import { buildHref } from '../base/route.js';

interface LearnerLinkProps {
  readonly userId: string;
  /** Display name, or the id. */
  readonly name: string;
}

export const LearnerLink = ({ userId, name }: LearnerLinkProps) => (
  <>
    <a class="name" href={buildHref('learner', [userId])}>
      <bdi>{name}</bdi>
    </a>
    {name !== userId && (
      <span class="sub">
        <bdi>{userId}</bdi>
      </span>
    )}
  </>
);
