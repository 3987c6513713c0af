/* Finding and mapping a test card: what the PCM and the control plugin share. */
#include "card_state.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <alsa/asoundlib.h>

int64_t card_now_ns(void)
{
  struct timespec now;

  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static int is_number(const char *text)
{
  if (!*text)
    return 0;
  for (; *text; text++)
    if (!isdigit((unsigned char)*text))
      return 0;
  return 1;
}

/* Maps the state of the card that is called `wanted`: a number, or an id.
 *
 * `root` has the shape of /proc/asound: card0/, and a link to it that bears the id. Each card's
 * folder holds a link `state` besides. `folder` receives the path of the folder.
 */
struct card *card_open(const char *root, const char *wanted, char *folder, int folder_size,
                       int *error)
{
  char path[512];
  struct card *card;
  int file;

  /* The errors are those of alsa-lib's own hw plugin: for a number, and for an id. */
  *error = is_number(wanted) ? -ENOENT : -ENODEV;
  snprintf(folder, folder_size, is_number(wanted) ? "%s/card%s" : "%s/%s", root, wanted);
  snprintf(path, sizeof path, "%s/state", folder);
  file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0)
    return NULL;
  card = mmap(NULL, sizeof *card, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (card == MAP_FAILED) {
    *error = -errno;
    return NULL;
  }
  if (card->magic != CARD_MAGIC || card->size != sizeof *card) {
    SNDERR("%s was not written for this plugin", path);
    card_close(card);
    *error = -EINVAL;
    return NULL;
  }
  if (card->index < 0) {
    card_close(card);
    return NULL;
  }
  return card;
}

void card_close(struct card *card)
{
  munmap(card, sizeof *card);
}

/* A descriptor that becomes readable when the state file was touched. */
int card_watch(const char *folder, uint32_t events)
{
  char path[512];
  int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

  snprintf(path, sizeof path, "%s/state", folder);
  if (watch >= 0 && inotify_add_watch(watch, path, events) < 0) {
    close(watch);
    return -1;
  }
  return watch;
}
