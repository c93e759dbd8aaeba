/* A program of a user of the installed library. */
#include <sardonyx/c_api.h>
#include <stdio.h>

int main(void) {
  const OrtApiBase* base = OrtGetApiBase();
  const OrtApi* api = base->GetApi(ORT_API_VERSION);
  if (api == NULL) return 1;
  printf("%s\n", base->GetVersionString());
  return 0;
}
