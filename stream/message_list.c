/* SPDX-License-Identifier: MIT */
/* message_list.c - messages held back, in order. */
#include <fornix/message.h>

#include <string.h>

int fx_msg_list_push(fx_msg_list *l, fx_msg *m)
{
	if (l->n == l->capacity) {
		int64_t capacity = l->capacity ? 2 * l->capacity : 64;
		fx_msg **list = fx_alloc(capacity, sizeof(fx_msg *));

		if (!list) {
			fx_drop(m);
			return FX_ENOMEM;
		}
		if (l->n > 0)
			memcpy(list, l->list, (size_t)l->n * sizeof(fx_msg *));
		fx_free(l->list);
		l->list = list;
		l->capacity = capacity;
	}
	l->list[l->n++] = m;
	return FX_OK;
}

void fx_msg_list_clear(fx_msg_list *l)
{
	for (int64_t i = 0; i < l->n; i++)
		fx_drop(l->list[i]);
	fx_free(l->list);
	memset(l, 0, sizeof *l);
}
