import SwaggerUI from 'swagger-ui-dist/swagger-ui-es-bundle.js';
import 'swagger-ui-dist/swagger-ui.css';
import './page.css';

const dark = matchMedia('(prefers-color-scheme: dark)');
const follow = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
dark.addEventListener('change', follow);
follow();

SwaggerUI({
  url: '/openapi.json',
  dom_id: '#docs',
  deepLinking: true,
  // Disables the external validator.
  validatorUrl: null,
  displayRequestDuration: true,
  filter: true,
  defaultModelsExpandDepth: 0,
});
